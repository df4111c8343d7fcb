//go:build proofinfer_static

package proofinfer

// The archive stands before the -lproofinfer that pkg-config gives, and resolves everything; --as-needed then drops the shared library.

// #cgo pkg-config: proofinfer
// #cgo CFLAGS: -DPROOFINFER_STATIC
// #cgo LDFLAGS: -Wl,--as-needed -l:libproofinfer.a -lm -pthread
import "C"
