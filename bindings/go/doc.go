// Package proofinfer runs Llama-family language models on a CPU with libproofinfer: the same bits on every machine, for every
// number of threads and every split of the work.
//
// A [Model] and a [Tokenizer] are loaded once and shared by any number of goroutines. Each sequence of tokens lives in a [Session];
// [Session.Generate] continues it, piece by piece:
//
//	model, err := proofinfer.OpenModel(ctx, "stories260K.bin")
//	tokenizer, err := proofinfer.OpenTokenizer("tok512.bin", model.VocabSize())
//	session, err := model.NewSession()
//	prompt, err := tokenizer.Encode("Once upon a time", proofinfer.AddBOS)
//	generation, err := session.Generate(tokenizer, sampler, prompt, proofinfer.MaxTokens(64))
//	for piece, err := range generation.All(ctx) {
//		...
//	}
//
// # Closing
//
// Every handle is an [io.Closer]. Close may be called more than once, in any order and from any goroutine, and never blocks: a call
// that is running on the handle ends as if nothing had happened and the memory goes with it; calls that start later return [ErrClosed]. A
// handle that is never closed is freed some time after the garbage collector finds it; do not count on that.
//
// # Goroutines
//
// Models and tokenizers may be used from many goroutines at once. The other handles work for one goroutine at a time; a second one gets an
// error that is [ErrBusy], never a race.
//
// # Contexts
//
// Loading, appending, evaluating a batch and generating stop soon after their context ends. The error is then both
// [ErrCancelled] and the context's own error for [errors.Is], and nothing has changed: the call can be repeated.
//
// # Linking
//
// The library is found by pkg-config when the package is compiled. With the build tag proofinfer_static the program carries the static library
// and needs none at run time.
package proofinfer
