package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"context"
	"math"
	"unsafe"
)

// Score appends tokens and tells the logarithm of the probability of each behind all before it; NaN for the first token of an empty session. The
// logits of the last one are kept. On failure the session is as before; its logits are gone only after a cancellation or [ErrNotFinite].
func (s *Session) Score(ctx context.Context, tokens []int32) ([]float32, error) {
	values := make([]float32, len(tokens))
	err := s.move(func(ptr *C.proofinfer_session) error {
		return cancellable(ctx, func(cancel *C.proofinfer_cancel) error {
			p, n := ids(tokens)
			var object *C.proofinfer_error
			return failure(C.proofinfer_session_score(ptr, p, n, (*C.float)(unsafe.SliceData(values)), cancel, &object), object)
		})
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// Score tells the logarithms of the probabilities of the tokens of many texts, each from the beginning of a sequence: NaN for the first, then each
// behind all before it. They are evaluated together, several in a pass, with the bits of each alone. Scope of the options: [ISA], [MemoryLimit].
func (m *Model) Score(ctx context.Context, texts [][]int32, options ...Option) ([][]float32, error) {
	p, err := m.h.acquire()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	var tokens []int32
	counts := make([]C.size_t, len(texts))
	for i, text := range texts {
		tokens = append(tokens, text...)
		counts[i] = C.size_t(len(text))
	}
	values := make([]float32, len(tokens))
	err = withOptions(options, func(settings *C.proofinfer_options) error {
		return cancellable(ctx, func(cancel *C.proofinfer_cancel) error {
			first, _ := ids(tokens)
			var object *C.proofinfer_error
			return failure(C.proofinfer_model_score((*C.proofinfer_model)(p), first, unsafe.SliceData(counts), C.size_t(len(counts)), settings,
				(*C.float)(unsafe.SliceData(values)), cancel, &object), object)
		})
	})
	if err != nil {
		return nil, err
	}
	scores := make([][]float32, len(texts))
	for i, text := range texts {
		scores[i], values = values[:len(text):len(text)], values[len(text):]
	}
	return scores, nil
}

// Perplexity is the exponential of minus the mean of a text's scores; NaN among them (first tokens) does not count. NaN where nothing does.
func Perplexity(logProbs []float32) float64 {
	sum, count := 0.0, 0
	for _, value := range logProbs {
		if math.IsNaN(float64(value)) {
			continue
		}
		sum += float64(value)
		count++
	}
	return math.Exp(-sum / float64(count))
}
