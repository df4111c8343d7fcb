package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"fmt"
	"sync"
	"unsafe"
)

// Version is the version of the library that the program runs with, for example "1.0.0".
func Version() string { return C.GoString(C.proofinfer_version_text()) }

// Build tells how that library was built: compiler, architecture, kernel sets.
func Build() string { return C.GoString(C.proofinfer_build_text()) }

// CheckVersion returns an error that is [ErrVersion] if the library is of another major version than the header that this package was
// compiled with. Everything that loads or creates a handle checks it first.
func CheckVersion() error { return versionError() }

var versionError = sync.OnceValue(func() error {
	return compareVersions(int(C.proofinfer_version_number()), C.PROOFINFER_VERSION_NUMBER)
})

func compareVersions(library, header int) error {
	if library/1000000 == header/1000000 {
		return nil
	}
	return fmt.Errorf("%w: the library is version %s and this program was compiled for version %s; the first numbers must be equal", ErrVersion,
		versionText(library), versionText(header))
}

func versionText(number int) string {
	return fmt.Sprintf("%d.%d.%d", number/1000000, number/1000%1000, number%1000)
}

// KernelSet is one set of CPU kernels that the library was compiled with. All give the same bits.
type KernelSet struct {
	Name      string // "scalar", "sse2", "avx2", "avx512", "neon"
	Available bool   // this CPU and operating system can run it
}

// KernelSets lists the kernel sets, slowest first.
func KernelSets() []KernelSet {
	sets := make([]KernelSet, C.proofinfer_isa_count())
	for i := range sets {
		sets[i] = KernelSet{C.GoString(C.proofinfer_isa_name(C.size_t(i))), C.proofinfer_isa_available(C.size_t(i)) == 1}
	}
	return sets
}

// SelfTest runs a built-in model on every kernel set of this CPU and compares it with built-in figures, in milliseconds.
func SelfTest() error {
	if err := CheckVersion(); err != nil {
		return err
	}
	var object *C.proofinfer_error
	status := C.proofinfer_selftest(&object)
	return failure(status, object)
}

// text gives a string's bytes to C for the length of one call; cgo keeps them alive and in place.
func text(s string) (*C.char, C.size_t) {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s))), C.size_t(len(s))
}

// ids gives tokens to C for the length of one call.
func ids(tokens []int32) (*C.int32_t, C.size_t) {
	return (*C.int32_t)(unsafe.SliceData(tokens)), C.size_t(len(tokens))
}

// firstBytes is the room that short texts out of the library get at the first try.
const firstBytes = 64

// bytesOut calls a function that writes text, once more with the room that it asks for.
func bytesOut(call func(buffer *C.char, capacity C.size_t, needed *C.size_t) error) ([]byte, error) {
	buffer := make([]byte, firstBytes)
	for {
		var needed C.size_t
		err := call((*C.char)(unsafe.Pointer(unsafe.SliceData(buffer))), C.size_t(len(buffer)), &needed)
		if err == nil {
			return buffer[:needed], nil
		}
		if int(needed) <= len(buffer) {
			return nil, err
		}
		buffer = make([]byte, needed)
	}
}
