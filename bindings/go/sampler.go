package proofinfer

// #include <proofinfer.h>
import "C"

import "unsafe"

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

// Reseed sets the random state as [Seed] does.
func (s *Sampler) Reseed(seed uint64) error {
	p, err := s.h.acquire()
	if err != nil {
		return err
	}
	defer s.h.release()
	var object *C.proofinfer_error
	return failure(C.proofinfer_sampler_reseed((*C.proofinfer_sampler)(p), C.uint64_t(seed), &object), object)
}

// Close frees the sampler. A generation that uses it keeps what it needs.
func (s *Sampler) Close() error {
	s.h.close()
	return nil
}
