package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"fmt"
	"math"
	"unsafe"
)

// Tokenizer is a vocabulary: immutable, shared by goroutines. Streams and generations keep it alive.
type Tokenizer struct {
	h         *handle
	vocabSize int32
	info      TokenizerInfo
}

// TokenizerInfo is what a tokenizer says of itself. Ids are [NoToken] where the file names none.
type TokenizerInfo struct {
	Model        string // the kind of vocabulary: "llama2.c", "llama" or "gpt2"
	PreTokenizer string // how a text is cut into words, as the file names it; "" but for "gpt2"

	BOS, EOS         int32 // the beginning and the end of a text
	EOT, EOM         int32 // the end of a turn, of a message
	Unknown, Padding int32

	AddBOS, AddEOS bool // whether the model expects texts to have them
	AddSpacePrefix bool // whether encoding puts a space before a text
}

// PieceKind is what a piece is for. Those of a tokenizer.bin are all normal.
type PieceKind int32

const (
	PieceNormal      PieceKind = C.PROOFINFER_PIECE_NORMAL
	PieceUnknown     PieceKind = C.PROOFINFER_PIECE_UNKNOWN
	PieceControl     PieceKind = C.PROOFINFER_PIECE_CONTROL
	PieceUserDefined PieceKind = C.PROOFINFER_PIECE_USER_DEFINED
	PieceUnused      PieceKind = C.PROOFINFER_PIECE_UNUSED
	PieceByte        PieceKind = C.PROOFINFER_PIECE_BYTE
)

// EncodeFlags say what [Tokenizer.Encode] adds to the ids of the text.
type EncodeFlags uint32

const (
	AddBOS EncodeFlags = C.PROOFINFER_ENCODE_BOS // the beginning of a text first
	AddEOS EncodeFlags = C.PROOFINFER_ENCODE_EOS // the end of a text last

	AddDefault   EncodeFlags = C.PROOFINFER_ENCODE_DEFAULT // those two as the file says; of a tokenizer.bin, BOS
	ParseSpecial EncodeFlags = C.PROOFINFER_ENCODE_SPECIAL // control pieces spelled in the text become their ids
)

// NoToken stands for "no token before this one".
const NoToken int32 = -1

// OpenTokenizer loads the tokenizer of a GGUF file, or a tokenizer.bin of llama2.c. vocabSize, usually [Model.VocabSize], says how many pieces
// to read: a tokenizer.bin has no count of its own; of a GGUF file 0 takes all.
func OpenTokenizer(path string, vocabSize int, options ...Option) (*Tokenizer, error) {
	return openTokenizer(vocabSize, options, func(size C.int32_t, settings *C.proofinfer_options, tokenizer **C.proofinfer_tokenizer,
		object **C.proofinfer_error) C.int32_t {
		p, n := text(path)
		return C.proofinfer_tokenizer_open(p, n, size, settings, tokenizer, object)
	})
}

// OpenTokenizerBytes loads a tokenizer from memory. data is copied, not kept.
func OpenTokenizerBytes(data []byte, vocabSize int, options ...Option) (*Tokenizer, error) {
	return openTokenizer(vocabSize, options, func(size C.int32_t, settings *C.proofinfer_options, tokenizer **C.proofinfer_tokenizer,
		object **C.proofinfer_error) C.int32_t {
		return C.proofinfer_tokenizer_open_memory(unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), size, settings, tokenizer, object)
	})
}

type openTokenizerFunction func(C.int32_t, *C.proofinfer_options, **C.proofinfer_tokenizer, **C.proofinfer_error) C.int32_t

func openTokenizer(vocabSize int, options []Option, open openTokenizerFunction) (*Tokenizer, error) {
	size, err := int32Of("vocabSize", vocabSize)
	if err != nil {
		return nil, err
	}
	var ptr *C.proofinfer_tokenizer
	err = withOptions(options, func(settings *C.proofinfer_options) error {
		var object *C.proofinfer_error
		return failure(open(size, settings, &ptr, &object), object)
	})
	if err != nil {
		return nil, err
	}
	t := &Tokenizer{vocabSize: int32(C.proofinfer_tokenizer_vocab_size(ptr)), info: readTokenizerInfo(ptr)}
	t.h = newHandle(t, unsafe.Pointer(ptr), func(p unsafe.Pointer) { C.proofinfer_tokenizer_free((*C.proofinfer_tokenizer)(p)) })
	return t, nil
}

func readTokenizerInfo(ptr *C.proofinfer_tokenizer) TokenizerInfo {
	number := func(property C.int32_t) int32 {
		var value C.int64_t
		C.proofinfer_tokenizer_get_i64(ptr, property, &value, nil)
		return int32(value)
	}
	name := func(property C.int32_t) string { return C.GoString(C.proofinfer_tokenizer_get_text(ptr, property)) }
	return TokenizerInfo{
		Model: name(C.PROOFINFER_TOKENIZER_MODEL), PreTokenizer: name(C.PROOFINFER_TOKENIZER_PRE),
		BOS: number(C.PROOFINFER_TOKENIZER_BOS), EOS: number(C.PROOFINFER_TOKENIZER_EOS),
		EOT: number(C.PROOFINFER_TOKENIZER_EOT), EOM: number(C.PROOFINFER_TOKENIZER_EOM),
		Unknown: number(C.PROOFINFER_TOKENIZER_UNKNOWN), Padding: number(C.PROOFINFER_TOKENIZER_PADDING),
		AddBOS: number(C.PROOFINFER_TOKENIZER_ADD_BOS) == 1, AddEOS: number(C.PROOFINFER_TOKENIZER_ADD_EOS) == 1,
		AddSpacePrefix: number(C.PROOFINFER_TOKENIZER_ADD_SPACE_PREFIX) == 1,
	}
}

// int32Of keeps a Go int from wrapping on its way into an int32_t.
func int32Of(name string, value int) (C.int32_t, error) {
	if value < math.MinInt32 || value > math.MaxInt32 {
		return 0, &Error{Code: ErrArgument, Message: fmt.Sprintf("%s: expected a 32-bit number, found %d", name, value)}
	}
	return C.int32_t(value), nil
}

// Close frees the tokenizer.
func (t *Tokenizer) Close() error {
	t.h.close()
	return nil
}

// VocabSize is the number of pieces.
func (t *Tokenizer) VocabSize() int { return int(t.vocabSize) }

// BOS is the id that begins a text.
func (t *Tokenizer) BOS() int32 { return t.info.BOS }

// EOS is the id that ends a text.
func (t *Tokenizer) EOS() int32 { return t.info.EOS }

// Info is what the tokenizer says of itself.
func (t *Tokenizer) Info() TokenizerInfo { return t.info }

// acquire gives the C object for one call that ends with release.
func (t *Tokenizer) acquire() (*C.proofinfer_tokenizer, error) {
	p, err := t.h.acquire()
	return (*C.proofinfer_tokenizer)(p), err
}

// PieceKind is what the piece of an id is for.
func (t *Tokenizer) PieceKind(token int32) (PieceKind, error) {
	ptr, err := t.acquire()
	if err != nil {
		return 0, err
	}
	defer t.h.release()
	var kind C.int32_t
	var object *C.proofinfer_error
	err = failure(C.proofinfer_tokenizer_piece_kind(ptr, C.int32_t(token), &kind, &object), object)
	return PieceKind(kind), err
}

// Piece is the piece of an id, what it is in a text, and its score.
func (t *Tokenizer) Piece(token int32) ([]byte, float32, error) {
	ptr, err := t.acquire()
	if err != nil {
		return nil, 0, err
	}
	defer t.h.release()
	var score C.float
	piece, err := bytesOut(func(buffer *C.char, capacity C.size_t, needed *C.size_t) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_tokenizer_piece(ptr, C.int32_t(token), buffer, capacity, needed, &score, &object), object)
	})
	return piece, float32(score), err
}

// Encode turns text into token ids. Control pieces in the text stay text unless [ParseSpecial] is given, and a NUL is a byte like any other.
func (t *Tokenizer) Encode(s string, flags EncodeFlags) ([]int32, error) {
	ptr, err := t.acquire()
	if err != nil {
		return nil, err
	}
	defer t.h.release()
	// The library promises that these are enough.
	tokens := make([]int32, 2*len(s)+3)
	p, n := text(s)
	out, capacity := ids(tokens)
	var needed C.size_t
	var object *C.proofinfer_error
	status := C.proofinfer_tokenizer_encode(ptr, p, n, C.uint32_t(flags), out, capacity, &needed, &object)
	if err := failure(status, object); err != nil {
		return nil, err
	}
	return tokens[:needed:needed], nil
}

// Decode turns token ids into text: whole UTF-8 characters, U+FFFD in place of bytes that are none. A BOS that begins them gives no
// text, so that decoding what [Tokenizer.Encode] made with [AddBOS] gives the text again.
func (t *Tokenizer) Decode(tokens []int32) (string, error) {
	previous := NoToken
	if len(tokens) > 0 && tokens[0] == t.info.BOS {
		previous, tokens = tokens[0], tokens[1:]
	}
	stream, err := t.NewStream(previous)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	var result []byte
	for _, token := range tokens {
		piece, err := stream.Push(token)
		if err != nil {
			return "", err
		}
		result = append(result, piece...)
	}
	rest, err := stream.Flush()
	return string(result) + rest, err
}

// DecodeToken gives the bytes of one id after the id previous ([NoToken]: none). They may be part of a character; a [Stream] puts them
// together. spelled gives the piece itself, "<0x0A>" instead of the byte.
func (t *Tokenizer) DecodeToken(previous, token int32, spelled bool) ([]byte, error) {
	ptr, err := t.acquire()
	if err != nil {
		return nil, err
	}
	defer t.h.release()
	var flags C.uint32_t
	if spelled {
		flags = C.PROOFINFER_DECODE_SPELLED
	}
	return bytesOut(func(buffer *C.char, capacity C.size_t, needed *C.size_t) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_tokenizer_decode(ptr, C.int32_t(previous), C.int32_t(token), flags, buffer, capacity, needed, &object), object)
	})
}
