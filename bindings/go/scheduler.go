package proofinfer

/*
#include <proofinfer.h>

#cgo noescape proofinfer_go_take
#cgo nocallback proofinfer_go_take

typedef struct {
	proofinfer_error *error;
	uint64_t id;
	size_t needed;
	int32_t token;
	int32_t stop;
} proofinfer_go_taken;

static int32_t proofinfer_go_take(proofinfer_scheduler *scheduler, uint64_t only, char *buffer, size_t capacity, proofinfer_go_taken *taken) {
	return proofinfer_scheduler_next(scheduler, only, &taken->id, &taken->token, buffer, capacity, &taken->needed, &taken->stop,
	                                 &taken->error);
}
*/
import "C"

import (
	"context"
	"iter"
	"runtime"
	"sync"
	"unsafe"
)

// queuedPieces is how many pieces a request holds for its reader; then the request alone stands still.
const queuedPieces = 16

// Scheduler runs many generations of one model together: each pass over the weights yields a token of every one that decodes, and the tokens and
// text of each are those of running alone. A goroutine of its own turns the wheel while there is work. All methods are goroutine-safe.
type Scheduler struct {
	h    *handle
	turn *turner
}

// turner is what the scheduler's goroutine holds: not the Scheduler, so that a forgotten one can be collected.
type turner struct {
	h      *handle
	mu     sync.Mutex
	jobs   []*Job
	wake   chan struct{} // 1 in it: there may be something to do
	ended  chan struct{}
	buffer []byte
}

// Job is one generation in a [Scheduler].
type Job struct {
	turn    *turner
	id      uint64
	ctx     context.Context
	unwatch func() bool
	pieces  chan Piece
	left    chan struct{} // closed when it has left the scheduler
	err     error         // why; read after pieces is closed

	mu     sync.Mutex
	unread bool // nobody reads the pieces any more
}

// NewScheduler makes a scheduler and starts its goroutine. Scope of the options: scheduler.
func (m *Model) NewScheduler(tokenizer *Tokenizer, options ...Option) (*Scheduler, error) {
	p, err := m.h.acquire()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	t, err := tokenizer.acquire()
	if err != nil {
		return nil, err
	}
	defer tokenizer.h.release()
	var ptr *C.proofinfer_scheduler
	err = withOptions(options, func(settings *C.proofinfer_options) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_scheduler_create((*C.proofinfer_model)(p), t, settings, &ptr, &object), object)
	})
	if err != nil {
		return nil, err
	}
	s := &Scheduler{turn: &turner{wake: make(chan struct{}, 1), ended: make(chan struct{}), buffer: make([]byte, firstBytes)}}
	turn := s.turn
	s.h = newHandle(s, unsafe.Pointer(ptr), func(p unsafe.Pointer) { C.proofinfer_scheduler_free((*C.proofinfer_scheduler)(p)) })
	turn.h = s.h
	// A forgotten scheduler's goroutine is to end too.
	runtime.AddCleanup(s, func(turn *turner) {
		turn.h.close()
		turn.signal()
	}, turn)
	go turn.run()
	return s, nil
}

// Submit hands in a prompt, one token or more. The generation has a session and a sampler of its own; scopes of the options: session, sampler,
// generation. The end of ctx cancels it. ErrLimit: the scheduler is full, or its memory. Read the job to its end, or close it.
func (s *Scheduler) Submit(ctx context.Context, prompt []int32, options ...Option) (*Job, error) {
	return s.handIn(ctx, func(scheduler *C.proofinfer_scheduler, id *C.uint64_t) error {
		return withOptions(options, func(settings *C.proofinfer_options) error {
			tokens, count := ids(prompt)
			var object *C.proofinfer_error
			return failure(C.proofinfer_scheduler_submit(scheduler, tokens, count, settings, id, &object), object)
		})
	})
}

// Add hands in a generation made with [Session.Generate], which goes on where it stands: that of a cloned or restored session, or one with a sampler
// that has biases or a mask. Until it leaves, it and its session give [ErrBusy] during passes, and moving the session ends it. The rest is as with
// Submit.
func (s *Scheduler) Add(ctx context.Context, generation *Generation) (*Job, error) {
	g, err := generation.h.acquire()
	if err != nil {
		return nil, err
	}
	defer generation.h.release()
	return s.handIn(ctx, func(scheduler *C.proofinfer_scheduler, id *C.uint64_t) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_scheduler_add(scheduler, (*C.proofinfer_generation)(g), id, &object), object)
	})
}

// handIn gives the scheduler something to do, and the job for it.
func (s *Scheduler) handIn(ctx context.Context, give func(scheduler *C.proofinfer_scheduler, id *C.uint64_t) error) (*Job, error) {
	if ctx.Err() != nil {
		return nil, cancelled(ctx, "not started")
	}
	p, err := s.h.acquire()
	if err != nil {
		return nil, err
	}
	defer s.h.release()
	job := &Job{turn: s.turn, ctx: ctx, pieces: make(chan Piece, queuedPieces), left: make(chan struct{})}
	s.turn.mu.Lock() // the goroutine must know the job when its first piece comes
	defer s.turn.mu.Unlock()
	var id C.uint64_t
	if err := give((*C.proofinfer_scheduler)(p), &id); err != nil {
		return nil, err
	}
	job.id = uint64(id)
	job.unwatch = context.AfterFunc(ctx, job.cancel)
	s.turn.jobs = append(s.turn.jobs, job)
	s.turn.signal()
	return job, nil
}

// Close cancels what runs, waits for the pass that is under way, and frees the scheduler.
func (s *Scheduler) Close() error {
	s.h.close()
	s.turn.signal()
	<-s.turn.ended
	return nil
}

func (t *turner) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run alternates passes and pieces, and sleeps while there is neither.
func (t *turner) run() {
	defer close(t.ended)
	for {
		p, err := t.h.acquire()
		if err != nil {
			break
		}
		scheduler := (*C.proofinfer_scheduler)(p)
		var rows C.size_t
		C.proofinfer_scheduler_step(scheduler, nil, &rows, nil)
		moved := t.deliver(scheduler)
		t.h.release()
		if rows == 0 && !moved {
			<-t.wake
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, job := range t.jobs {
		job.finish(ErrClosed)
	}
	t.jobs = nil
}

// deliver hands on the pieces of the jobs that have room for them, and tells whether there were any.
func (t *turner) deliver(scheduler *C.proofinfer_scheduler) (moved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	staying := t.jobs[:0]
	for _, job := range t.jobs {
		gone := false
		if job.hasRoom() {
			var got bool
			got, gone = t.take(scheduler, job)
			moved = moved || got
		}
		if !gone {
			staying = append(staying, job)
		}
	}
	clear(t.jobs[len(staying):])
	t.jobs = staying
	return moved
}

// take moves one piece of a job.
func (t *turner) take(scheduler *C.proofinfer_scheduler, job *Job) (got, gone bool) {
	for {
		var r C.proofinfer_go_taken
		status := C.proofinfer_go_take(scheduler, C.uint64_t(job.id), (*C.char)(unsafe.Pointer(unsafe.SliceData(t.buffer))),
			C.size_t(len(t.buffer)), &r)
		if status == C.PROOFINFER_E_BUFFER {
			C.proofinfer_error_free(r.error)
			t.buffer = make([]byte, r.needed)
			continue
		}
		if err := failure(status, r.error); err != nil {
			job.finish(err)
			return true, true
		}
		if r.id == 0 {
			return false, false
		}
		if r.stop == C.PROOFINFER_STOP_CANCELLED {
			job.finish(&Error{Code: ErrCancelled, Message: "the generation was cancelled"})
			return true, true
		}
		job.push(Piece{int32(r.token), string(t.buffer[:r.needed]), StopReason(r.stop)})
		if r.stop != C.PROOFINFER_STOP_NONE {
			job.finish(nil)
		}
		return true, r.stop != C.PROOFINFER_STOP_NONE
	}
}

func (j *Job) hasRoom() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.unread || len(j.pieces) < cap(j.pieces)
}

func (j *Job) push(piece Piece) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.unread {
		j.pieces <- piece // there is room: only the scheduler's goroutine fills it
	}
}

func (j *Job) finish(err error) {
	j.unwatch()
	j.err = err
	close(j.pieces)
	close(j.left)
}

// cancel asks the scheduler to let go of the job; its pieces are not read any more.
func (j *Job) cancel() {
	j.mu.Lock()
	j.unread = true
	j.mu.Unlock()
	if p, err := j.turn.h.acquire(); err == nil {
		C.proofinfer_scheduler_cancel((*C.proofinfer_scheduler)(p), C.uint64_t(j.id), nil)
		j.turn.h.release()
	}
	j.turn.signal()
}

// All yields the pieces up to and including the one with a Stop. An error, which comes with an empty piece, ends it too: that of the context, say. A
// break leaves the rest for later; Close if there is no later.
func (j *Job) All() iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		for {
			piece, open, err := j.next()
			if err != nil {
				yield(Piece{}, err)
				return
			}
			if !open || !yield(piece, nil) || piece.Stop != NotStopped {
				return
			}
		}
	}
}

// next waits for a piece; not open: there are no more.
func (j *Job) next() (piece Piece, open bool, err error) {
	if j.ctx.Err() != nil {
		return Piece{}, false, cancelled(j.ctx, "the generation was cancelled")
	}
	select {
	case piece, open = <-j.pieces:
	case <-j.ctx.Done():
		return Piece{}, false, cancelled(j.ctx, "the generation was cancelled")
	}
	if !open {
		return Piece{}, false, withContext(j.ctx, j.err)
	}
	if len(j.pieces) == cap(j.pieces)-1 {
		j.turn.signal() // it stood still
	}
	return piece, true, nil
}

// Close cancels the job if it has not ended, and returns when the scheduler has given its memory back.
func (j *Job) Close() error {
	select {
	case <-j.left:
	default:
		j.cancel()
		<-j.left
	}
	return nil
}
