package proofinfer

// #include <proofinfer.h>
import "C"

import "context"

// Format is a checkpoint format that [Convert] writes.
type Format int32

const (
	FormatLegacy   Format = C.PROOFINFER_FORMAT_LEGACY    // float32, no magic
	FormatVersion1 Format = C.PROOFINFER_FORMAT_VERSION_1 // float32
	FormatVersion2 Format = C.PROOFINFER_FORMAT_VERSION_2 // Q8_0
	FormatPacked   Format = C.PROOFINFER_FORMAT_PACKED    // as the weights lie in memory, to be mapped
)

// Convert writes the checkpoint at path from to path to in another format; to is whole or unchanged afterwards. groupSize is 0
// but for FormatVersion2, where 0 means the largest power of two up to 64 that fits.
func Convert(ctx context.Context, from, to string, format Format, groupSize int) error {
	size, err := int32Of("groupSize", groupSize)
	if err != nil {
		return err
	}
	if err := CheckVersion(); err != nil {
		return err
	}
	return cancellable(ctx, func(cancel *C.proofinfer_cancel) error {
		f, fromBytes := text(from)
		t, toBytes := text(to)
		var object *C.proofinfer_error
		return failure(C.proofinfer_convert(f, fromBytes, t, toBytes, C.int32_t(format), size, cancel, &object), object)
	})
}
