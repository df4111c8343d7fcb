//go:build !proofinfer_static

package proofinfer

// #cgo pkg-config: proofinfer
import "C"
