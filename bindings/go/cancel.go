package proofinfer

// #include <proofinfer.h>
import "C"

import "context"

func newCancel() (*C.proofinfer_cancel, error) {
	var cancel *C.proofinfer_cancel
	var object *C.proofinfer_error
	status := C.proofinfer_cancel_create(&cancel, &object)
	return cancel, failure(status, object)
}

// watch requests cancel when ctx ends, until the function that it returns is called; after that nothing touches cancel any more and no
// goroutine is left.
func watch(ctx context.Context, cancel *C.proofinfer_cancel) (unwatch func()) {
	requested := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		C.proofinfer_cancel_request(cancel)
		close(requested)
	})
	return func() {
		if !stop() {
			<-requested
		}
	}
}

// cancellable runs an operation that ends early when ctx does.
func cancellable(ctx context.Context, operation func(*C.proofinfer_cancel) error) error {
	if ctx.Done() == nil {
		return operation(nil)
	}
	if ctx.Err() != nil {
		return cancelled(ctx, "not started")
	}
	cancel, err := newCancel()
	if err != nil {
		return err
	}
	defer C.proofinfer_cancel_free(cancel)
	unwatch := watch(ctx, cancel)
	defer unwatch()
	return withContext(ctx, operation(cancel))
}
