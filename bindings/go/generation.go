package proofinfer

/*
#include <proofinfer.h>

#cgo noescape proofinfer_go_step
#cgo nocallback proofinfer_go_step

typedef struct {
	proofinfer_error *error;
	size_t needed;
	int32_t token;
	int32_t stop;
} proofinfer_go_result;

// One pointer for all results keeps them on the goroutine's stack.
static int32_t proofinfer_go_step(proofinfer_generation *generation, proofinfer_cancel *cancel, char *buffer, size_t capacity,
                                  proofinfer_go_result *result) {
	return proofinfer_generation_next(generation, cancel, &result->token, buffer, capacity, &result->needed, &result->stop, &result->error);
}
*/
import "C"

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"unsafe"
)

// StopReason says why a generation ended.
type StopReason int32

const (
	NotStopped     StopReason = C.PROOFINFER_STOP_NONE    // it goes on
	StoppedToken   StopReason = C.PROOFINFER_STOP_TOKEN   // a stop token came up; it gives no text and is not appended
	StoppedLength  StopReason = C.PROOFINFER_STOP_LENGTH  // MaxTokens reached
	StoppedContext StopReason = C.PROOFINFER_STOP_CONTEXT // the session has no room for another token
	StoppedString  StopReason = C.PROOFINFER_STOP_STRING  // a stop string is complete; its last token is not appended
)

// String is "none", "token", "length", "context" or "string".
func (r StopReason) String() string {
	if r < NotStopped || r > StoppedString {
		return "?"
	}
	return [...]string{"none", "token", "length", "context", "string"}[r]
}

// Piece is one step of a generation.
type Piece struct {
	Token int32      // the id, or NoToken when the generation has ended without one
	Text  string     // the text that it completes: whole UTF-8 characters, maybe none
	Stop  StopReason // NotStopped, or why this is the last piece
}

// Generation continues a session token by token. One goroutine at a time; a second one gets [ErrBusy].
type Generation struct {
	h       *handle
	session *Session
	stop    atomic.Int32
	mu      sync.Mutex // only ever tried; guards the buffer
	buffer  []byte
}

// Generate continues the session with a prompt; with an empty one the session must hold tokens already, and the last one's logits. Nothing
// is evaluated yet. The generation keeps session, tokenizer and sampler alive. Scope of the options: generation.
func (s *Session) Generate(tokenizer *Tokenizer, sampler *Sampler, prompt []int32, options ...Option) (*Generation, error) {
	t, err := tokenizer.acquire()
	if err != nil {
		return nil, err
	}
	defer tokenizer.h.release()
	p, err := sampler.h.acquire()
	if err != nil {
		return nil, err
	}
	defer sampler.h.release()
	var ptr *C.proofinfer_generation
	err = s.move(func(session *C.proofinfer_session) error {
		return withOptions(options, func(settings *C.proofinfer_options) error {
			tokens, count := ids(prompt)
			var object *C.proofinfer_error
			return failure(C.proofinfer_generation_create(session, t, (*C.proofinfer_sampler)(p), tokens, count, settings, &ptr, &object), object)
		})
	})
	if err != nil {
		return nil, err
	}
	g := &Generation{session: s, buffer: make([]byte, firstBytes)}
	g.h = newHandle(g, unsafe.Pointer(ptr), func(p unsafe.Pointer) { C.proofinfer_generation_free((*C.proofinfer_generation)(p)) })
	return g, nil
}

// use runs a call on the generation, alone.
func (g *Generation) use(call func(*C.proofinfer_generation) error) error {
	p, err := g.h.acquire()
	if err != nil {
		return err
	}
	defer g.h.release()
	if !g.mu.TryLock() {
		return busy("generation")
	}
	defer g.mu.Unlock()
	return call((*C.proofinfer_generation)(p))
}

// step is one C call, repeated with more room where a piece is long.
func (g *Generation) step(cancel *C.proofinfer_cancel) (piece Piece, err error) {
	err = g.use(func(ptr *C.proofinfer_generation) error {
		if !g.session.moving.TryLock() {
			return busy("generation's session")
		}
		defer g.session.moving.Unlock()
		for {
			var r C.proofinfer_go_result
			status := C.proofinfer_go_step(ptr, cancel, (*C.char)(unsafe.Pointer(unsafe.SliceData(g.buffer))), C.size_t(len(g.buffer)), &r)
			if status == C.PROOFINFER_OK {
				g.stop.Store(int32(r.stop))
				piece = Piece{int32(r.token), string(g.buffer[:r.needed]), StopReason(r.stop)}
				return nil
			}
			err := failure(status, r.error)
			if status != C.PROOFINFER_E_BUFFER {
				return err
			}
			g.buffer = make([]byte, r.needed)
		}
	})
	return piece, err
}

// Next yields the next token and its text. The first call evaluates the prompt. The last piece has a Stop; calls after it repeat the end
// with NoToken and no text. After an error nothing is lost and the call can be repeated.
func (g *Generation) Next(ctx context.Context) (piece Piece, err error) {
	err = cancellable(ctx, func(cancel *C.proofinfer_cancel) error {
		piece, err = g.step(cancel)
		return err
	})
	return piece, err
}

// All yields the pieces up to and including the one with a Stop. An error, which comes with an empty piece, ends it too. The generation
// may be used inside the loop. After a break or a cancellation All goes on where it was left; after the end it yields nothing.
func (g *Generation) All(ctx context.Context) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		if g.Stop() != NotStopped {
			return
		}
		err := cancellable(ctx, func(cancel *C.proofinfer_cancel) error {
			for {
				piece, err := g.step(cancel)
				if err != nil {
					return err
				}
				if !yield(piece, nil) || piece.Stop != NotStopped {
					return nil
				}
			}
		})
		if err != nil {
			yield(Piece{}, err)
		}
	}
}

// Stop says why the generation ended, or NotStopped.
func (g *Generation) Stop() StopReason { return StopReason(g.stop.Load()) }

// StopString says which of [StopStrings] ended the generation, from 0; [ErrState] if none did.
func (g *Generation) StopString() (index int, err error) {
	err = g.use(func(ptr *C.proofinfer_generation) error {
		var found C.size_t
		var object *C.proofinfer_error
		err := failure(C.proofinfer_generation_stop_string(ptr, &found, &object), object)
		index = int(found)
		return err
	})
	return index, err
}

// LogProbs gives the log-probability of the last piece's token by the model's own distribution, and those of the most probable tokens, as many as
// the option [LogProbs] said; [ErrState] without the option or a piece. For a token that was forced where the logits are not finite the first
// is NaN and there are no others.
func (g *Generation) LogProbs() (logProb float32, top []TokenLogProb, err error) {
	err = g.use(func(ptr *C.proofinfer_generation) error {
		for capacity := 16; ; {
			tokens, values := make([]int32, capacity), make([]float32, capacity)
			first, count := ids(tokens)
			var own C.float
			var needed C.size_t
			var object *C.proofinfer_error
			status := C.proofinfer_generation_logprobs(ptr, &own, first, (*C.float)(unsafe.SliceData(values)), count, &needed, &object)
			err := failure(status, object)
			if status == C.PROOFINFER_E_BUFFER {
				capacity = int(needed)
				continue
			}
			if err == nil {
				logProb, top = float32(own), pairs(tokens[:needed], values[:needed])
			}
			return err
		}
	})
	return logProb, top, err
}

// Force makes the next piece this token instead of a sampled one; no random number is drawn for it.
func (g *Generation) Force(token int32) error {
	return g.use(func(ptr *C.proofinfer_generation) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_generation_force(ptr, C.int32_t(token), &object), object)
	})
}

// Close frees the generation; the session keeps what was appended.
func (g *Generation) Close() error {
	g.h.close()
	return nil
}
