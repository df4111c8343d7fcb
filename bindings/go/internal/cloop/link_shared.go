//go:build !proofinfer_static

package cloop

// #cgo pkg-config: proofinfer
import "C"
