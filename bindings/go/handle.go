package proofinfer

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// closedBit marks a handle that Close was called on; the bits below it count the calls that are running.
const closedBit = uint64(1) << 63

// liveHandles counts the objects of the library that this package owns; the tests see in it that none is forgotten.
var liveHandles atomic.Int64

// handle owns one object of the library and frees it once: at Close, or when the last call that was running at Close ends. A
// running call is counted, so neither Close nor the garbage collector's cleanup can free what it uses. All methods are goroutine-safe.
type handle struct {
	state atomic.Uint64
	ptr   unsafe.Pointer
	free  func(unsafe.Pointer)
}

// newHandle takes over ptr. owner is the public object: when it becomes unreachable without a Close, the handle is closed for it.
func newHandle[T any](owner *T, ptr unsafe.Pointer, free func(unsafe.Pointer)) *handle {
	liveHandles.Add(1)
	h := &handle{ptr: ptr, free: free}
	runtime.AddCleanup(owner, (*handle).close, h)
	return h
}

// acquire counts a call and gives the object, or ErrClosed. Every success is followed by one release.
func (h *handle) acquire() (unsafe.Pointer, error) {
	if h == nil {
		return nil, ErrClosed
	}
	for {
		s := h.state.Load()
		if s&closedBit != 0 {
			return nil, ErrClosed
		}
		if h.state.CompareAndSwap(s, s+1) {
			return h.ptr, nil
		}
	}
}

// release ends a counted call. After closedBit is set the count only falls, so it reaches 0 once.
func (h *handle) release() {
	if h.state.Add(^uint64(0)) == closedBit {
		h.destroy()
	}
}

func (h *handle) destroy() {
	h.free(h.ptr)
	h.ptr = nil // a leak checker shall not find the address here
	liveHandles.Add(-1)
}

func (h *handle) close() {
	if h == nil {
		return
	}
	for {
		s := h.state.Load()
		if s&closedBit != 0 {
			return
		}
		if h.state.CompareAndSwap(s, s|closedBit) {
			if s == 0 {
				h.destroy()
			}
			return
		}
	}
}
