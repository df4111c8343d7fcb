package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"context"
	"fmt"
	"sync"
	"unsafe"
)

// Batch evaluates tokens of many sessions in one pass over the weights; the bits of each session are those of running alone. One goroutine at a
// time; a second one gets [ErrBusy].
type Batch struct {
	h      *handle
	mu     sync.Mutex // only ever tried
	queued map[*Session]struct{}
}

// NewBatch makes a batch with room for maxRows tokens a pass, 1 to 4096. Scope of the options: batch.
func (m *Model) NewBatch(maxRows int, options ...Option) (*Batch, error) {
	if maxRows < 0 {
		return nil, &Error{Code: ErrArgument, Message: fmt.Sprintf("maxRows: expected 1 to 4096, found %d", maxRows)}
	}
	p, err := m.h.acquire()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	var ptr *C.proofinfer_batch
	err = withOptions(options, func(settings *C.proofinfer_options) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_batch_create((*C.proofinfer_model)(p), C.size_t(maxRows), settings, &ptr, &object), object)
	})
	if err != nil {
		return nil, err
	}
	b := &Batch{queued: map[*Session]struct{}{}}
	b.h = newHandle(b, unsafe.Pointer(ptr), func(p unsafe.Pointer) { C.proofinfer_batch_free((*C.proofinfer_batch)(p)) })
	return b, nil
}

func (b *Batch) call(f func(*C.proofinfer_batch) error) error {
	p, err := b.h.acquire()
	if err != nil {
		return err
	}
	defer b.h.release()
	if !b.mu.TryLock() {
		return busy("batch")
	}
	defer b.mu.Unlock()
	return f((*C.proofinfer_batch)(p))
}

// Add queues one token for a session; several for one session are appended in that order. wantLogits keeps the logits of this token's
// position. The session stays alive until Evaluate or Clear.
func (b *Batch) Add(session *Session, token int32, wantLogits bool) error {
	return b.call(func(ptr *C.proofinfer_batch) error {
		s, err := session.acquire()
		if err != nil {
			return err
		}
		defer session.h.release()
		var wants C.int32_t
		if wantLogits {
			wants = 1
		}
		var object *C.proofinfer_error
		err = failure(C.proofinfer_batch_add(ptr, s, C.int32_t(token), wants, &object), object)
		if err == nil {
			b.queued[session] = struct{}{}
		}
		return err
	})
}

// Evaluate evaluates what is queued and empties the queue. On failure no session has moved and the queue is kept.
func (b *Batch) Evaluate(ctx context.Context) error {
	return b.call(func(ptr *C.proofinfer_batch) error {
		for session := range b.queued {
			if !session.moving.TryLock() {
				return busy("batch's session")
			}
			defer session.moving.Unlock()
		}
		err := cancellable(ctx, func(cancel *C.proofinfer_cancel) error {
			var object *C.proofinfer_error
			return failure(C.proofinfer_batch_evaluate(ptr, cancel, &object), object)
		})
		if err == nil {
			clear(b.queued)
		}
		return err
	})
}

// Clear empties the queue.
func (b *Batch) Clear() error {
	return b.call(func(ptr *C.proofinfer_batch) error {
		var object *C.proofinfer_error
		err := failure(C.proofinfer_batch_clear(ptr, &object), object)
		if err == nil {
			clear(b.queued)
		}
		return err
	})
}

// Close frees the batch.
func (b *Batch) Close() error {
	b.h.close()
	return nil
}
