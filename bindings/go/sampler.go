package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"fmt"
	"unsafe"
)

// Sampler picks tokens from logits and holds the random state. One goroutine at a time; a second one gets [ErrBusy].
type Sampler struct{ h *handle }

// NewSampler makes a sampler for a vocabulary. Scope of the options: sampler.
func NewSampler(vocabSize int, options ...Option) (*Sampler, error) {
	size, err := int32Of("vocabSize", vocabSize)
	if err != nil {
		return nil, err
	}
	var ptr *C.proofinfer_sampler
	err = withOptions(options, func(settings *C.proofinfer_options) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_sampler_create(size, settings, &ptr, &object), object)
	})
	if err != nil {
		return nil, err
	}
	s := &Sampler{}
	s.h = newHandle(s, unsafe.Pointer(ptr), func(p unsafe.Pointer) { C.proofinfer_sampler_free((*C.proofinfer_sampler)(p)) })
	return s, nil
}

// Sample picks a token. The logits are as many as the vocabulary and are not changed.
func (s *Sampler) Sample(logits []float32) (int32, error) {
	p, err := s.h.acquire()
	if err != nil {
		return NoToken, err
	}
	defer s.h.release()
	var token C.int32_t
	var object *C.proofinfer_error
	status := C.proofinfer_sampler_sample((*C.proofinfer_sampler)(p), (*C.float)(unsafe.SliceData(logits)), C.size_t(len(logits)), &token, &object)
	if err := failure(status, object); err != nil {
		return NoToken, err
	}
	return int32(token), nil
}

// use runs a call on the sampler.
func (s *Sampler) use(call func(*C.proofinfer_sampler, **C.proofinfer_error) C.int32_t) error {
	p, err := s.h.acquire()
	if err != nil {
		return err
	}
	defer s.h.release()
	var object *C.proofinfer_error
	return failure(call((*C.proofinfer_sampler)(p), &object), object)
}

// Reseed sets the random state as [Seed] does, and empties the window of the penalties.
func (s *Sampler) Reseed(seed uint64) error {
	return s.use(func(p *C.proofinfer_sampler, object **C.proofinfer_error) C.int32_t {
		return C.proofinfer_sampler_reseed(p, C.uint64_t(seed), object)
	})
}

// Accept lets tokens of another origin, a prompt say, join the window of the penalties, oldest first.
func (s *Sampler) Accept(tokens []int32) error {
	return s.use(func(p *C.proofinfer_sampler, object **C.proofinfer_error) C.int32_t {
		first, count := ids(tokens)
		return C.proofinfer_sampler_accept(p, first, count, object)
	})
}

// SetBias adds numbers to the logits of some tokens, in place of all biases of before.
func (s *Sampler) SetBias(biases map[int32]float32) error {
	tokens, values := make([]int32, 0, len(biases)), make([]float32, 0, len(biases))
	for token, bias := range biases {
		tokens, values = append(tokens, token), append(values, bias)
	}
	return s.use(func(p *C.proofinfer_sampler, object **C.proofinfer_error) C.int32_t {
		first, count := ids(tokens)
		return C.proofinfer_sampler_set_bias(p, first, (*C.float)(unsafe.SliceData(values)), count, object)
	})
}

// SetBanned bans tokens, in place of those banned before: they are never picked.
func (s *Sampler) SetBanned(tokens ...int32) error {
	return s.use(func(p *C.proofinfer_sampler, object **C.proofinfer_error) C.int32_t {
		first, count := ids(tokens)
		return C.proofinfer_sampler_set_banned(p, first, count, object)
	})
}

// SetMask allows only the tokens of a mask, until another one takes its place: before each token for a grammar. Bit i%32 of word i/32 allows
// id i, and there are (vocabulary+31)/32 words; nil lifts the mask.
func (s *Sampler) SetMask(mask []uint32) error {
	return s.use(func(p *C.proofinfer_sampler, object **C.proofinfer_error) C.int32_t {
		return C.proofinfer_sampler_set_mask(p, (*C.uint32_t)(unsafe.SliceData(mask)), C.size_t(len(mask)), object)
	})
}

// TokenLogProb is a token and the logarithm of its probability by the model's own distribution: the softmax of the logits as they are.
type TokenLogProb struct {
	Token   int32
	LogProb float32
}

// LogProbsOf gives the logarithms of the probabilities of tokens.
func LogProbsOf(logits []float32, tokens []int32) ([]float32, error) {
	if err := CheckVersion(); err != nil {
		return nil, err
	}
	values := make([]float32, len(tokens))
	first, count := ids(tokens)
	var object *C.proofinfer_error
	status := C.proofinfer_logits_logprobs((*C.float)(unsafe.SliceData(logits)), C.size_t(len(logits)), first, count,
		(*C.float)(unsafe.SliceData(values)), &object)
	if err := failure(status, object); err != nil {
		return nil, err
	}
	return values, nil
}

// TopLogProbs gives the most probable tokens, most probable first.
func TopLogProbs(logits []float32, count int) ([]TokenLogProb, error) {
	if err := CheckVersion(); err != nil {
		return nil, err
	}
	if count < 0 || count > len(logits) {
		return nil, &Error{Code: ErrArgument, Message: fmt.Sprintf("count is %d; expected 0 to the number of logits, %d", count, len(logits))}
	}
	tokens, values := make([]int32, count), make([]float32, count)
	first, n := ids(tokens)
	var object *C.proofinfer_error
	status := C.proofinfer_logits_top((*C.float)(unsafe.SliceData(logits)), C.size_t(len(logits)), n, first,
		(*C.float)(unsafe.SliceData(values)), &object)
	if err := failure(status, object); err != nil {
		return nil, err
	}
	return pairs(tokens, values), nil
}

func pairs(tokens []int32, values []float32) []TokenLogProb {
	result := make([]TokenLogProb, len(tokens))
	for i := range result {
		result[i] = TokenLogProb{tokens[i], values[i]}
	}
	return result
}

// Close frees the sampler. A generation that uses it keeps what it needs.
func (s *Sampler) Close() error {
	s.h.close()
	return nil
}
