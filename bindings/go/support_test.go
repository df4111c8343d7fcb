package proofinfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"proofinfer.example/proofinfer/internal/cloop"
)

// TestMain keeps memory in one arena, for TestStress to measure it, and in the end clears the addresses that garbage still holds, so that a leak
// checker at exit finds what nobody can free any more.
func TestMain(m *testing.M) {
	cloop.OneArena()
	status := m.Run()
	for range 3 {
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	os.Exit(status)
}

// shape is the header of a llama2.c checkpoint.
type shape struct {
	Dim       int `json:"dim"`
	HiddenDim int `json:"hidden_dim"`
	NLayers   int `json:"n_layers"`
	NHeads    int `json:"n_heads"`
	NKVHeads  int `json:"n_kv_heads"`
	VocabSize int `json:"vocab_size"`
	SeqLen    int `json:"seq_len"`
}

// small has a vocabulary that smallTokenizer fits.
var small = shape{Dim: 64, HiddenDim: 172, NLayers: 2, NHeads: 4, NKVHeads: 2, VocabSize: 512, SeqLen: 256}

// checkpoint makes the legacy file that tests/data/golden/README.md specifies: every weight from one splitmix64 stream.
func checkpoint(s shape, seed uint64) []byte {
	var file bytes.Buffer
	for _, v := range []int{s.Dim, s.HiddenDim, s.NLayers, s.NHeads, s.NKVHeads, s.VocabSize, s.SeqLen} {
		binary.Write(&file, binary.LittleEndian, int32(v))
	}
	put := func(v float32) {
		file.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
	}
	draw := func(count int, value func(r float64) float64) {
		for range count {
			seed += 0x9E3779B97F4A7C15
			z := seed
			z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
			z = (z ^ z>>27) * 0x94D049BB133111EB
			z ^= z >> 31
			put(float32(value((float64(z>>40) - (1 << 23)) / (1 << 23))))
		}
	}
	quarter := func(r float64) float64 { return r / 4 }
	norm := func(r float64) float64 { return 1 + r/4 }
	matrix := func(layers, rows, n int) {
		draw(layers*rows*n, func(r float64) float64 { return math.Ldexp(r, -((bits.Len(uint(n)) - 1) / 2)) })
	}
	vocab, shared := s.VocabSize, true
	if vocab < 0 {
		vocab, shared = -vocab, false
	}
	headSize := s.Dim / s.NHeads
	draw(vocab*s.Dim, quarter)
	draw(s.NLayers*s.Dim, norm)
	matrix(s.NLayers, s.Dim, s.Dim)
	matrix(s.NLayers, s.NKVHeads*headSize, s.Dim)
	matrix(s.NLayers, s.NKVHeads*headSize, s.Dim)
	matrix(s.NLayers, s.Dim, s.Dim)
	draw(s.NLayers*s.Dim, norm)
	matrix(s.NLayers, s.HiddenDim, s.Dim)
	matrix(s.NLayers, s.Dim, s.HiddenDim)
	matrix(s.NLayers, s.HiddenDim, s.Dim)
	draw(s.Dim, norm)
	file.Write(make([]byte, 4*s.SeqLen*headSize))
	if !shared {
		draw(vocab*s.Dim, quarter)
	}
	return file.Bytes()
}

// smallTokenizer has 512 pieces: three special ones, a piece for each byte, the printable characters, and pairs of letters.
var smallTokenizer = sync.OnceValue(func() []byte {
	pieces := []string{"<unk>", "\n<s>\n", "\n</s>\n"}
	for b := range 256 {
		pieces = append(pieces, "<0x"+string("0123456789ABCDEF"[b>>4])+string("0123456789ABCDEF"[b&15])+">")
	}
	for c := ' '; c <= '~'; c++ {
		pieces = append(pieces, string(c))
	}
	pieces = append(pieces, "é", "\U0001F999", "th", "he", " the")
	for a := 'a'; len(pieces) < 512; a++ {
		for b := 'a'; b <= 'z' && len(pieces) < 512; b++ {
			pieces = append(pieces, string(a)+string(b)+"_")
		}
	}
	var file bytes.Buffer
	binary.Write(&file, binary.LittleEndian, uint32(27))
	for i, piece := range pieces {
		binary.Write(&file, binary.LittleEndian, float32(-i))
		binary.Write(&file, binary.LittleEndian, int32(len(piece)))
		file.WriteString(piece)
	}
	return file.Bytes()
})

var smallCheckpoint = sync.OnceValue(func() []byte { return checkpoint(small, 5) })

// must fails the test on an error and gives the value otherwise: must(f())(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

type world struct {
	model     *Model
	tokenizer *Tokenizer
}

// smallWorld opens the small model and its tokenizer; they are closed with the test.
func smallWorld(t testing.TB, options ...Option) world {
	t.Helper()
	return openWorld(t, smallCheckpoint(), smallTokenizer(), options...)
}

func openWorld(t testing.TB, model, tokenizer []byte, options ...Option) world {
	t.Helper()
	m := must(OpenModelBytes(context.Background(), model, options...))(t)
	t.Cleanup(func() { m.Close() })
	z := must(OpenTokenizerBytes(tokenizer, m.VocabSize()))(t)
	t.Cleanup(func() { z.Close() })
	return world{m, z}
}

// generate starts a generation in a session of its own; all of it is closed with the test.
func (w world) generate(t testing.TB, prompt string, options ...Option) *Generation {
	t.Helper()
	session := must(w.model.NewSession(options...))(t)
	t.Cleanup(func() { session.Close() })
	sampler := must(NewSampler(w.model.VocabSize(), options...))(t)
	t.Cleanup(func() { sampler.Close() })
	g := must(session.Generate(w.tokenizer, sampler, must(w.tokenizer.Encode(prompt, AddBOS))(t), options...))(t)
	t.Cleanup(func() { g.Close() })
	return g
}

// collect runs a generation to its end.
func collect(t testing.TB, g *Generation) (tokens []int32, text string) {
	t.Helper()
	for piece, err := range g.All(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if piece.Token != NoToken {
			tokens = append(tokens, piece.Token)
		}
		text += piece.Text
	}
	return tokens, text
}

// golden reads a file of figures.
func golden(t testing.TB, name string, into any) {
	t.Helper()
	data := must(os.ReadFile(filepath.Join(repository(), "tests", "data", "golden", name)))(t)
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// repository is the root of the source tree, also where the package is tested elsewhere.
func repository() string {
	if root := os.Getenv("PROOFINFER_SOURCE"); root != "" {
		return root
	}
	return filepath.Join("..", "..")
}

// realModels is the folder with the models that are not in the repository; the test is skipped where there is none.
func realModels(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("PROOFINFER_MODELS")
	if folder == "" {
		folder = filepath.Join(repository(), "..", "shared", "models")
	}
	if _, err := os.Stat(filepath.Join(folder, "stories260K.bin")); err != nil {
		t.Skipf("SKIPPED[real-models]: no stories260K.bin in %s (PROOFINFER_MODELS names the folder)", folder)
	}
	return folder
}

// stories opens stories260K.
func stories(t testing.TB, options ...Option) world {
	t.Helper()
	folder := realModels(t)
	return openWorld(t, must(os.ReadFile(filepath.Join(folder, "stories260K.bin")))(t),
		must(os.ReadFile(filepath.Join(folder, "tok512.bin")))(t), options...)
}
