package proofinfer

// #include <proofinfer.h>
import "C"

import (
	"context"
	"unsafe"
)

// Model is the weights and the shape of a network: immutable, shared by goroutines and sessions. Sessions and batches keep
// what they need of it alive, so it may be closed before them.
type Model struct {
	h    *handle
	info ModelInfo
}

// ModelInfo is what a model says of itself.
type ModelInfo struct {
	Format      string // "llama2.c legacy", "llama2.c version 1", "llama2.c version 2", "proofinfer packed"
	ElementType string // "f32", "q8_0"
	ISA         string // the kernel set in use

	Dim, HiddenDim, Layers, Heads, KVHeads, VocabSize, SeqLen, HeadSize int

	SharedClassifier bool // the classifier is the embedding
	GroupSize        int  // elements a quantization group; 0: not quantized
	FileBytes        int64
	WeightBytes      int64 // weights held in memory, padding included
	MemoryBytes      int64 // all memory that the model holds
	ParameterCount   int64
	Threads          int
	Mapped           bool // the weights are a mapped packed file
}

// Tensor is one tensor of a checkpoint.
type Tensor struct {
	Name                  string // for example "layers.3.wq"
	Rows, Columns         int64
	FileOffset, FileBytes int64
	Quantized             bool
	Type                  string // for example "f32"
}

// OpenModel loads the checkpoint at a path. Scope of the options: model.
func OpenModel(ctx context.Context, path string, options ...Option) (*Model, error) {
	return openModel(ctx, options, func(settings *C.proofinfer_options, cancel *C.proofinfer_cancel, model **C.proofinfer_model,
		object **C.proofinfer_error) C.int32_t {
		p, n := text(path)
		return C.proofinfer_model_open(p, n, settings, cancel, model, object)
	})
}

// OpenModelBytes loads a checkpoint from memory. data is copied, not kept.
func OpenModelBytes(ctx context.Context, data []byte, options ...Option) (*Model, error) {
	return openModel(ctx, options, func(settings *C.proofinfer_options, cancel *C.proofinfer_cancel, model **C.proofinfer_model,
		object **C.proofinfer_error) C.int32_t {
		return C.proofinfer_model_open_memory(unsafe.Pointer(unsafe.SliceData(data)), C.size_t(len(data)), settings, cancel, model, object)
	})
}

type openFunction func(*C.proofinfer_options, *C.proofinfer_cancel, **C.proofinfer_model, **C.proofinfer_error) C.int32_t

func openModel(ctx context.Context, options []Option, open openFunction) (*Model, error) {
	var ptr *C.proofinfer_model
	err := withOptions(options, func(settings *C.proofinfer_options) error {
		return cancellable(ctx, func(cancel *C.proofinfer_cancel) error {
			var object *C.proofinfer_error
			return failure(open(settings, cancel, &ptr, &object), object)
		})
	})
	if err != nil {
		return nil, err
	}
	m := &Model{info: readInfo(ptr)}
	m.h = newHandle(m, unsafe.Pointer(ptr), func(p unsafe.Pointer) { C.proofinfer_model_free((*C.proofinfer_model)(p)) })
	return m, nil
}

func readInfo(ptr *C.proofinfer_model) ModelInfo {
	number := func(property C.int32_t) int64 {
		var value C.int64_t
		C.proofinfer_model_get_i64(ptr, property, &value, nil)
		return int64(value)
	}
	name := func(property C.int32_t) string { return C.GoString(C.proofinfer_model_get_text(ptr, property)) }
	return ModelInfo{
		Format: name(C.PROOFINFER_MODEL_FORMAT), ElementType: name(C.PROOFINFER_MODEL_ELEMENT_TYPE), ISA: name(C.PROOFINFER_MODEL_ISA),
		Dim: int(number(C.PROOFINFER_MODEL_DIM)), HiddenDim: int(number(C.PROOFINFER_MODEL_HIDDEN_DIM)),
		Layers: int(number(C.PROOFINFER_MODEL_N_LAYERS)), Heads: int(number(C.PROOFINFER_MODEL_N_HEADS)),
		KVHeads: int(number(C.PROOFINFER_MODEL_N_KV_HEADS)), VocabSize: int(number(C.PROOFINFER_MODEL_VOCAB_SIZE)),
		SeqLen: int(number(C.PROOFINFER_MODEL_SEQ_LEN)), HeadSize: int(number(C.PROOFINFER_MODEL_HEAD_SIZE)),
		SharedClassifier: number(C.PROOFINFER_MODEL_SHARED_CLASSIFIER) == 1, GroupSize: int(number(C.PROOFINFER_MODEL_GROUP_SIZE)),
		FileBytes: number(C.PROOFINFER_MODEL_FILE_BYTES), WeightBytes: number(C.PROOFINFER_MODEL_WEIGHT_BYTES),
		MemoryBytes: number(C.PROOFINFER_MODEL_MEMORY_BYTES), ParameterCount: number(C.PROOFINFER_MODEL_PARAMETER_COUNT),
		Threads: int(number(C.PROOFINFER_MODEL_THREADS)), Mapped: number(C.PROOFINFER_MODEL_IS_MAPPED) == 1,
	}
}

// Close frees the model; its memory goes with its last session and batch.
func (m *Model) Close() error {
	m.h.close()
	return nil
}

// Info is read once at load and stays valid after Close.
func (m *Model) Info() ModelInfo { return m.info }

// VocabSize is the number of token ids.
func (m *Model) VocabSize() int { return m.info.VocabSize }

// Tensors lists the tensors of the checkpoint in file order.
func (m *Model) Tensors() ([]Tensor, error) {
	p, err := m.h.acquire()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	ptr := (*C.proofinfer_model)(p)
	tensors := make([]Tensor, C.proofinfer_model_tensor_count(ptr))
	for i := range tensors {
		if tensors[i], err = readTensor(ptr, C.size_t(i)); err != nil {
			return nil, err
		}
	}
	return tensors, nil
}

// Metadata gives the keys of a GGUF file and their values as text, long ones cut; files of other formats have none.
func (m *Model) Metadata() (map[string]string, error) {
	p, err := m.h.acquire()
	if err != nil {
		return nil, err
	}
	defer m.h.release()
	ptr := (*C.proofinfer_model)(p)
	metadata := map[string]string{}
	for i := C.size_t(0); i < C.proofinfer_model_metadata_count(ptr); i++ {
		key, err := bytesOut(func(buffer *C.char, capacity C.size_t, needed *C.size_t) error {
			var object *C.proofinfer_error
			return failure(C.proofinfer_model_metadata_key(ptr, i, buffer, capacity, needed, &object), object)
		})
		if err != nil {
			return nil, err
		}
		value, err := bytesOut(func(buffer *C.char, capacity C.size_t, needed *C.size_t) error {
			var object *C.proofinfer_error
			return failure(C.proofinfer_model_metadata_text(ptr, i, buffer, capacity, needed, &object), object)
		})
		if err != nil {
			return nil, err
		}
		metadata[string(key)] = string(value)
	}
	return metadata, nil
}

func readTensor(ptr *C.proofinfer_model, index C.size_t) (Tensor, error) {
	name, err := bytesOut(func(buffer *C.char, capacity C.size_t, needed *C.size_t) error {
		var object *C.proofinfer_error
		return failure(C.proofinfer_model_tensor_name(ptr, index, buffer, capacity, needed, &object), object)
	})
	if err != nil {
		return Tensor{}, err
	}
	number := func(property C.int32_t) int64 {
		var value C.int64_t
		C.proofinfer_model_tensor_get_i64(ptr, index, property, &value, nil)
		return int64(value)
	}
	return Tensor{
		Name: string(name), Rows: number(C.PROOFINFER_TENSOR_ROWS), Columns: number(C.PROOFINFER_TENSOR_COLUMNS),
		FileOffset: number(C.PROOFINFER_TENSOR_FILE_OFFSET), FileBytes: number(C.PROOFINFER_TENSOR_FILE_BYTES),
		Quantized: number(C.PROOFINFER_TENSOR_IS_QUANTIZED) == 1,
		Type:      C.GoString(C.proofinfer_model_tensor_type(ptr, index)),
	}, nil
}
