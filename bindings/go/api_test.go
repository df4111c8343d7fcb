package proofinfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

var background = context.Background()

// expectCode fails unless err is the code, found by errors.Is and errors.As alike, with a message.
func expectCode(t *testing.T, err error, code Code) {
	t.Helper()
	var e *Error
	var asCode Code
	if !errors.Is(err, code) || !errors.As(err, &e) || e.Code != code || e.Message == "" || !errors.As(err, &asCode) || asCode != code {
		t.Errorf("expected %v, found %v", code, err)
	}
}

func TestModelTellsItsShape(t *testing.T) {
	w := smallWorld(t, Threads(2))
	info := w.model.Info()
	want := ModelInfo{Format: "llama2.c legacy", ElementType: "f32", ISA: info.ISA, Dim: 64, HiddenDim: 172, Layers: 2, Heads: 4, KVHeads: 2,
		VocabSize: 512, SeqLen: 256, HeadSize: 16, SharedClassifier: true, FileBytes: int64(len(smallCheckpoint())),
		WeightBytes: info.WeightBytes, MemoryBytes: info.MemoryBytes, ParameterCount: info.ParameterCount, Threads: 2}
	if info != want || info.ISA == "" || info.WeightBytes < 4*info.ParameterCount || info.MemoryBytes < info.WeightBytes {
		t.Errorf("expected %+v\nfound    %+v", want, info)
	}
	tensors := must(w.model.Tensors())(t)
	names := []string{}
	for _, tensor := range tensors {
		names = append(names, tensor.Name)
		if tensor.Rows < 1 || tensor.Columns < 1 || tensor.FileBytes != 4*tensor.Rows*tensor.Columns || tensor.Quantized {
			t.Errorf("odd tensor %+v", tensor)
		}
	}
	if !slices.Contains(names, "layers.1.wq") {
		t.Errorf("no layers.1.wq in %v", names)
	}
}

func TestLibraryTellsItsVersionKernelsAndOptions(t *testing.T) {
	if Version() == "" || Build() == "" || CheckVersion() != nil {
		t.Errorf("version %q, build %q, check %v", Version(), Build(), CheckVersion())
	}
	err := compareVersions(2003004, 1000000)
	if !errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), "2.3.4") || !strings.Contains(err.Error(), "1.0.0") {
		t.Errorf("a mismatch reads %q", err)
	}
	if sets := KernelSets(); len(sets) == 0 || sets[0] != (KernelSet{"scalar", true}) {
		t.Errorf("kernel sets %v", sets)
	}
	if err := SelfTest(); err != nil {
		t.Error(err)
	}
	found := map[string]OptionInfo{}
	for _, option := range Options() {
		found[option.Name] = option
	}
	if seed := found["seed"]; seed.Type != "uint64" || seed.Default != "1" || seed.Scope != "sampler" {
		t.Errorf("option seed: %+v", seed)
	}
}

func TestModelOpensFromAPath(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "modèle \U0001F999.bin")
	if err := os.WriteFile(path, smallCheckpoint(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "z.bin"), smallTokenizer(), 0o600); err != nil {
		t.Fatal(err)
	}
	m := must(OpenModel(background, path, Threads(2), ShareFromBytes(0)))(t)
	defer m.Close()
	z := must(OpenTokenizer(filepath.Join(folder, "z.bin"), m.VocabSize()))(t)
	defer z.Close()
	if z.VocabSize() != 512 || z.BOS() != 1 || z.EOS() != 2 {
		t.Errorf("tokenizer: %d pieces, BOS %d, EOS %d", z.VocabSize(), z.BOS(), z.EOS())
	}
}

func TestConvertWritesAQuantizedModel(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from.bin"), filepath.Join(folder, "to.bin")
	// Its sizes have a common power of two.
	shape := shape{Dim: 64, HiddenDim: 192, NLayers: 1, NHeads: 4, NKVHeads: 4, VocabSize: 97, SeqLen: 32}
	if err := os.WriteFile(from, checkpoint(shape, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Convert(background, from, to, FormatVersion2, 0); err != nil {
		t.Fatal(err)
	}
	m := must(OpenModel(background, to))(t)
	defer m.Close()
	if info := m.Info(); info.ElementType != "q8_0" || info.GroupSize != 64 {
		t.Errorf("found %+v", info)
	}
	expectCode(t, Convert(background, from, to, FormatVersion2, 48), ErrArgument)
	expectCode(t, Convert(background, from, to, Format(9), 0), ErrArgument)
	expectCode(t, Convert(background, from+"?", to, FormatVersion1, 0), ErrIO)
	ctx, cancel := context.WithCancel(background)
	cancel()
	if err := Convert(ctx, from, to, FormatVersion1, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPackedFileIsMapped(t *testing.T) {
	folder := t.TempDir()
	from, to := filepath.Join(folder, "from.bin"), filepath.Join(folder, "to.bin")
	shape := shape{Dim: 64, HiddenDim: 192, NLayers: 1, NHeads: 4, NKVHeads: 4, VocabSize: 97, SeqLen: 32}
	if err := os.WriteFile(from, checkpoint(shape, 3), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Convert(background, from, to, FormatPacked, 0); err != nil {
		t.Fatal(err)
	}
	logits := func(path string, mapped bool, options ...Option) []float32 {
		m := must(OpenModel(background, path, options...))(t)
		defer m.Close()
		if m.Info().Mapped != mapped {
			t.Errorf("%s: mapped is %v", path, m.Info().Mapped)
		}
		s := must(m.NewSession())(t)
		defer s.Close()
		if err := s.Append(background, []int32{1, 2}, LastLogits); err != nil {
			t.Fatal(err)
		}
		return must(s.Logits(1))(t)
	}
	expected := logits(from, false)
	for _, found := range [][]float32{logits(to, true), logits(to, true, Verify(true)), logits(to, false, Map(false))} {
		if !slices.Equal(found, expected) {
			t.Error("other logits")
		}
	}
}

func TestClonesAndSavedStatesGoOnWithTheSameBits(t *testing.T) {
	w := smallWorld(t)
	s := must(w.model.NewSession(ContextLength(200)))(t)
	defer s.Close()
	prompt := make([]int32, 100)
	for i := range prompt {
		prompt[i] = int32(i % 50)
	}
	if err := s.Append(background, prompt, LastLogits); err != nil {
		t.Fatal(err)
	}
	state := must(s.Save())(t)
	clone := must(s.Clone())(t)
	defer clone.Close()
	restored := must(w.model.NewSession(ContextLength(150)))(t)
	defer restored.Close()
	if err := restored.Restore(state); err != nil {
		t.Fatal(err)
	}
	if clone.ContextLength() != 200 || !bytes.Equal(must(clone.Save())(t), state) || !bytes.Equal(must(restored.Save())(t), state) {
		t.Error("another state")
	}
	for _, each := range []*Session{s, clone, restored} {
		if err := each.Append(background, []int32{7, 8}, LastLogits); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(must(each.Logits(101))(t), must(s.Logits(101))(t)) {
			t.Error("other logits")
		}
	}
	expectCode(t, s.Restore(state[:len(state)-1]), ErrTruncated)
	expectCode(t, s.Restore(nil), ErrTruncated)
	_, err := s.Clone(ContextLength(7))
	expectCode(t, err, ErrArgument)
}

func TestFailuresCarryCodeAndMessage(t *testing.T) {
	_, err := OpenModel(background, "/nowhere/model.bin")
	expectCode(t, err, ErrIO)
	if !strings.Contains(err.Error(), "/nowhere/model.bin") {
		t.Errorf("the message does not name the file: %v", err)
	}
	_, err = OpenModel(background, "a\x00b")
	expectCode(t, err, ErrArgument)
	_, err = OpenModelBytes(background, nil)
	if err == nil {
		t.Error("an empty file was loaded")
	}
	_, err = OpenModelBytes(background, []byte("<!DOCTYPE html><html><body>not a model</body></html>"))
	expectCode(t, err, ErrUnrecognized)
	_, err = OpenModelBytes(background, smallCheckpoint(), MemoryLimit(1000))
	expectCode(t, err, ErrLimit)
	_, err = OpenTokenizerBytes(smallTokenizer(), 513)
	expectCode(t, err, ErrTruncated)
	_, err = OpenTokenizerBytes(smallTokenizer(), 1<<40)
	expectCode(t, err, ErrArgument)
	for _, option := range []Option{Set("no such option", int64(1)), Set("threads", "two"), Set("threads", struct{}{}), Threads(0), Threads(-1),
		Threads(1000000), Temperature(-1), Temperature(math.NaN()), Temperature(math.Inf(1)), TopP(2), TopP(math.NaN()), ISA("z80")} {
		_, err = OpenModelBytes(background, smallCheckpoint(), option)
		expectCode(t, err, ErrArgument)
	}
}

func TestEncodeAndDecodeGoRoundTrip(t *testing.T) {
	w := smallWorld(t)
	for _, text := range []string{"", "a", "Hello the world", "é\U0001F999", "\x00\x01", "日本語", strings.Repeat("the ", 1000)} {
		tokens := must(w.tokenizer.Encode(text, AddBOS|AddEOS))(t)
		if tokens[0] != 1 || tokens[len(tokens)-1] != 2 {
			t.Errorf("%q: no BOS and EOS in %v", text, tokens)
		}
		if back := must(w.tokenizer.Decode(tokens[:len(tokens)-1]))(t); back != text {
			t.Errorf("%q came back as %q", text, back)
		}
	}
	if tokens := must(w.tokenizer.Encode("", 0))(t); len(tokens) != 0 {
		t.Errorf("nothing became %v", tokens)
	}
	_, err := w.tokenizer.DecodeToken(NoToken, 512, false)
	expectCode(t, err, ErrArgument)
	if b := must(w.tokenizer.DecodeToken(NoToken, 3+'\n', false))(t); string(b) != "\n" {
		t.Errorf("byte piece: %q", b)
	}
	if b := must(w.tokenizer.DecodeToken(NoToken, 3+'\n', true))(t); string(b) != "<0x0A>" {
		t.Errorf("spelled byte piece: %q", b)
	}
	piece, score, err := w.tokenizer.Piece(3)
	if string(piece) != "<0x00>" || score != -3 || err != nil {
		t.Errorf("piece 3: %q %v %v", piece, score, err)
	}
}

func TestStreamNeverCutsACharacter(t *testing.T) {
	w := smallWorld(t)
	s := must(w.tokenizer.NewStream(NoToken))(t)
	defer s.Close()
	bytes := []byte("é\U0001F999")
	var text string
	for i, b := range bytes {
		piece := must(s.Push(3 + int32(b)))(t)
		if whole := i == 1 || i == 5; whole == (piece == "") {
			t.Errorf("byte %d gave %q", i, piece)
		}
		text += piece
	}
	if text != string(bytes) {
		t.Errorf("found %q", text)
	}
	if piece := must(s.Push(3+0xF0))(t) + must(s.Flush())(t) + must(s.Flush())(t); piece != "\uFFFD" {
		t.Errorf("an incomplete end gave %q", piece)
	}
	_, err := s.Push(-5)
	expectCode(t, err, ErrArgument)
}

func TestSessionAppendsRewindsAndKeepsLogits(t *testing.T) {
	w := smallWorld(t)
	s := must(w.model.NewSession(ContextLength(16)))(t)
	defer s.Close()
	tokens := []int32{1, 5, 9, 200, 31, 77}
	if err := s.Append(background, tokens, LastLogits); err != nil {
		t.Fatal(err)
	}
	want := must(s.Logits(5))(t)
	_, err := s.Logits(2)
	expectCode(t, err, ErrState)
	_, err = s.Logits(6)
	expectCode(t, err, ErrArgument)
	_, err = s.Logits(-1)
	expectCode(t, err, ErrArgument)
	expectCode(t, s.CopyLogits(5, make([]float32, 511)), ErrBuffer)
	if err := s.Rewind(2); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(background, tokens[2:], AllLogits); err != nil {
		t.Fatal(err)
	}
	if found := must(s.Logits(5))(t); !slices.Equal(found, want) {
		t.Error("a rewind and another split gave other bits")
	}
	if found := must(s.Tokens())(t); !slices.Equal(found, tokens) {
		t.Errorf("tokens %v", found)
	}
	expectCode(t, s.Append(background, make([]int32, 11), NoLogits), ErrContext)
	expectCode(t, s.Append(background, []int32{512}, NoLogits), ErrArgument)
	expectCode(t, s.Append(background, []int32{1}, Logits(7)), ErrArgument)
	expectCode(t, s.Rewind(7), ErrArgument)
	expectCode(t, s.Rewind(-1), ErrArgument)
	if n := must(s.Position())(t); n != 6 || s.ContextLength() != 16 || must(s.MemoryBytes())(t) == 0 {
		t.Errorf("position %d, context %d", n, s.ContextLength())
	}
	_, err = w.model.NewSession(ContextLength(257))
	expectCode(t, err, ErrArgument)
}

func TestLogitsViewHoldsTheSessionStill(t *testing.T) {
	w := smallWorld(t)
	s := must(w.model.NewSession())(t)
	if err := s.Append(background, []int32{1, 2}, LastLogits); err != nil {
		t.Fatal(err)
	}
	want := must(s.Logits(1))(t)
	err := s.ViewLogits(1, func(logits []float32) error {
		expectCode(t, s.Append(background, []int32{3}, NoLogits), ErrBusy)
		expectCode(t, s.Rewind(0), ErrBusy)
		s.Close()
		if !slices.Equal(logits, want) {
			t.Error("the view changed")
		}
		return io.EOF
	})
	if err != io.EOF {
		t.Errorf("the view's error became %v", err)
	}
	if err := s.ViewLogits(1, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestBatchGivesTheBitsOfRunningAlone(t *testing.T) {
	w := smallWorld(t)
	tokens := [][]int32{{1, 9, 8}, {1, 100, 3}, {1, 7, 300}}
	batch := must(w.model.NewBatch(16))(t)
	defer batch.Close()
	sessions := make([]*Session, len(tokens))
	for i := range tokens {
		sessions[i] = must(w.model.NewSession(ContextLength(8)))(t)
		defer sessions[i].Close()
		for j, token := range tokens[i] {
			if err := batch.Add(sessions[i], token, j == 2); err != nil {
				t.Fatal(err)
			}
		}
	}
	expectCode(t, batch.Add(sessions[0], 512, false), ErrArgument)
	if err := batch.Evaluate(background); err != nil {
		t.Fatal(err)
	}
	for i, s := range sessions {
		alone := must(w.model.NewSession(ContextLength(8)))(t)
		defer alone.Close()
		if err := alone.Append(background, tokens[i], LastLogits); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(must(s.Logits(2))(t), must(alone.Logits(2))(t)) {
			t.Errorf("session %d differs", i)
		}
	}
	if err := batch.Add(sessions[0], 4, false); err != nil {
		t.Fatal(err)
	}
	err := sessions[0].ViewLogits(2, func([]float32) error {
		expectCode(t, batch.Evaluate(background), ErrBusy)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := batch.Clear(); err != nil {
		t.Fatal(err)
	}
	_, err = w.model.NewBatch(0)
	expectCode(t, err, ErrArgument)
	_, err = w.model.NewBatch(-1)
	expectCode(t, err, ErrArgument)
}

func TestSamplerRefusesWhatItCannotSample(t *testing.T) {
	s := must(NewSampler(4, Temperature(1), Seed(42)))(t)
	defer s.Close()
	_, err := s.Sample([]float32{1, 2, float32(math.NaN()), 4})
	expectCode(t, err, ErrNotFinite)
	_, err = s.Sample([]float32{1, 2, 3})
	expectCode(t, err, ErrArgument)
	_, err = NewSampler(0)
	expectCode(t, err, ErrArgument)
	draws := func() (tokens [32]int32) {
		for i := range tokens {
			tokens[i] = must(s.Sample([]float32{1, 1, 1, 1}))(t)
		}
		return tokens
	}
	first := draws()
	if err := s.Reseed(42); err != nil {
		t.Fatal(err)
	}
	if second := draws(); first != second {
		t.Errorf("the seed does not repeat: %v %v", first, second)
	}
}

func TestSamplerFiltersAndPenalties(t *testing.T) {
	logits := make([]float32, 40)
	for i := range logits {
		logits[i] = -float32(max(i-20, 20-i))
	}
	for _, c := range []struct {
		option Option
		want   []int32
	}{{TopK(3), []int32{19, 20, 21}}, {MinP(0.3), []int32{19, 20, 21}}, {TypicalP(0.01), []int32{19}}, {TopK(1), []int32{20}}} {
		s := must(NewSampler(40, Temperature(1), TopP(1), c.option))(t)
		defer s.Close()
		seen := map[int32]bool{}
		for range 300 {
			seen[must(s.Sample(logits))(t)] = true
		}
		found := slices.Sorted(maps.Keys(seen))
		if !slices.Equal(found, c.want) {
			t.Errorf("%v drew %v", c.option, found)
		}
	}
	for _, option := range []Option{PresencePenalty(10), FrequencyPenalty(10), RepetitionPenalty(100)} {
		s := must(NewSampler(3, option, PenaltyWindow(2)))(t)
		defer s.Close()
		var found []int32
		for range 6 {
			found = append(found, must(s.Sample([]float32{5, 4, 3}))(t))
		}
		if !slices.Equal(found, []int32{0, 1, 2, 0, 1, 2}) {
			t.Errorf("%v: %v", option, found)
		}
		if err := s.Reseed(1); err != nil {
			t.Error(err)
		}
		if err := s.Accept([]int32{0, 1}); err != nil {
			t.Error(err)
		}
		if token := must(s.Sample([]float32{5, 4, 3}))(t); token != 2 {
			t.Errorf("%v after Accept: %d", option, token)
		}
		expectCode(t, s.Accept([]int32{3}), ErrArgument)
	}
}

func TestSamplerBiasesBansAndMasks(t *testing.T) {
	s := must(NewSampler(40))(t)
	defer s.Close()
	logits := make([]float32, 40)
	for i := range logits {
		logits[i] = float32(i)
	}
	expect := func(err error, want int32) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		if token := must(s.Sample(logits))(t); token != want {
			t.Errorf("drew %d, not %d", token, want)
		}
	}
	expect(s.SetBias(map[int32]float32{3: 100, 4: -1.5}), 3)
	expect(s.SetBanned(3), 39)
	expect(s.SetMask([]uint32{0b10110, 0}), 4)
	expect(s.SetBias(map[int32]float32{4: -3}), 2)
	if err := s.SetMask([]uint32{8, 0}); err != nil {
		t.Error(err)
	}
	_, err := s.Sample(logits)
	expectCode(t, err, ErrState)
	expect(s.SetMask(nil), 39)
	expect(s.SetBanned(), 39)
	expectCode(t, s.SetBias(map[int32]float32{40: 1}), ErrArgument)
	expectCode(t, s.SetBias(map[int32]float32{4: float32(math.Inf(-1))}), ErrArgument)
	expectCode(t, s.SetBanned(-1), ErrArgument)
	expectCode(t, s.SetMask([]uint32{1}), ErrArgument)
}

func TestLogProbabilitiesAreTheModelsOwn(t *testing.T) {
	logits := []float32{0, 2, 1, 2}
	total := 0.0
	for _, x := range logits {
		total += math.Exp(float64(x))
	}
	all := must(LogProbsOf(logits, []int32{0, 1, 2, 3}))(t)
	for i, x := range logits {
		if exact := float64(x) - math.Log(total); math.Abs(float64(all[i])-exact) > 1e-6 {
			t.Errorf("%d: %v, not %v", i, all[i], exact)
		}
	}
	top := must(TopLogProbs(logits, 3))(t)
	if !slices.Equal(top, []TokenLogProb{{1, all[1]}, {3, all[3]}, {2, all[2]}}) {
		t.Errorf("found %v", top)
	}
	_, err := TopLogProbs(logits, 5)
	expectCode(t, err, ErrArgument)
	_, err = LogProbsOf(logits, []int32{4})
	expectCode(t, err, ErrArgument)
	_, err = TopLogProbs([]float32{float32(math.NaN())}, 1)
	expectCode(t, err, ErrNotFinite)

	w := smallWorld(t)
	g := w.generate(t, "the", Temperature(1.2), Seed(3), MaxTokens(10), StopTokens(), LogProbs(20))
	defer g.Close()
	_, _, err = g.LogProbs()
	expectCode(t, err, ErrState)
	for piece, err := range g.All(background) {
		if err != nil {
			t.Fatal(err)
		}
		own, top, err := g.LogProbs()
		if err != nil || len(top) != 20 {
			t.Fatalf("%v: %d of 20, %v", piece, len(top), err)
		}
		for i, each := range top {
			if each.LogProb > 0 || (i > 0 && each.LogProb > top[i-1].LogProb) || (each.Token == piece.Token && each.LogProb != own) {
				t.Errorf("%v: %v in %v", piece, own, top)
			}
		}
	}
}

func TestStopStringsAreCutOutAndTold(t *testing.T) {
	w := smallWorld(t)
	for _, c := range []struct {
		text  string
		stops []string
		want  string
		stop  StopReason
		index int
	}{{"aébcd", []string{"bx", "bcd"}, "aé", StoppedString, 1}, {"abcx", []string{"bcd", "never"}, "abcx", StoppedLength, 0},
		{"aé", []string{"é"}, "a", StoppedString, 0}, {"ab", nil, "ab", StoppedLength, 0}} {
		g := w.generate(t, "the", MaxTokens(len(c.text)), StopTokens(), StopStrings(c.stops...))
		defer g.Close()
		found := ""
		for _, b := range []byte(c.text) {
			if err := g.Force(3 + int32(b)); err != nil {
				t.Fatal(err)
			}
			piece := must(g.Next(background))(t)
			if found += piece.Text; piece.Stop != NotStopped {
				break
			}
		}
		if found != c.want || g.Stop() != c.stop {
			t.Errorf("%q without %q: %q, %v", c.text, c.stops, found, g.Stop())
		}
		index, err := g.StopString()
		if c.stop == StoppedString {
			if err != nil || index != c.index {
				t.Errorf("%q: string %d, %v", c.text, index, err)
			}
		} else {
			expectCode(t, err, ErrState)
		}
	}
	if StoppedString.String() != "string" {
		t.Error(StoppedString.String())
	}
}

func TestGenerationYieldsTextAndStops(t *testing.T) {
	w := smallWorld(t)
	g := w.generate(t, "the", Temperature(1.2), Seed(3), MaxTokens(40), StopTokens())
	tokens, text := collect(t, g)
	if len(tokens) != 40 || g.Stop() != StoppedLength || !utf8.ValidString(text) {
		t.Errorf("%d tokens, stop %v, %q", len(tokens), g.Stop(), text)
	}
	whole := must(w.tokenizer.Decode(tokens))(t)
	if strings.TrimLeft(whole, " ") != strings.TrimLeft(text, " ") {
		t.Errorf("pieces %q\nwhole  %q", text, whole)
	}
	piece := must(g.Next(background))(t)
	if piece != (Piece{NoToken, "", StoppedLength}) {
		t.Errorf("after the end: %+v", piece)
	}
	for piece, err := range g.All(background) {
		t.Errorf("after the end All yields %+v %v", piece, err)
	}
	full := w.generate(t, "the", ContextLength(12), StopTokens())
	if collect(t, full); full.Stop() != StoppedContext || full.Stop().String() != "context" {
		t.Errorf("at the end of the context: %v", full.Stop())
	}
}

func TestGenerationGoesOnAfterABreakAndTakesForcedTokens(t *testing.T) {
	w := smallWorld(t)
	options := []Option{Temperature(1), Seed(9), MaxTokens(20), StopTokens(7)}
	want, _ := collect(t, w.generate(t, "a", options...))
	g := w.generate(t, "a", options...)
	var found []int32
	for g.Stop() == NotStopped {
		for piece, err := range g.All(background) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, piece.Token)
			break
		}
	}
	if !slices.Equal(found, want) {
		t.Errorf("with breaks: %v\nwithout:     %v", found, want)
	}
	g = w.generate(t, "a", options...)
	for piece, err := range g.All(background) {
		if err != nil {
			t.Fatal(err)
		}
		if piece.Stop != NotStopped {
			if piece.Token != 7 || piece.Stop != StoppedToken || piece.Text != "" {
				t.Errorf("a forced stop token: %+v", piece)
			}
			break
		}
		if err := g.Force(7); err != nil {
			t.Fatal(err)
		}
	}
	expectCode(t, g.Force(8), ErrState)
}

func TestLongPiecesFit(t *testing.T) {
	tokenizer := smallTokenizer()
	long := strings.Repeat("long ", 1000)
	at := strings.Index(string(tokenizer), "\U0001F999")
	data := slices.Concat(tokenizer[:at-4], []byte{byte(len(long)), byte(len(long) >> 8), 0, 0}, []byte(long), tokenizer[at+4:])
	w := openWorld(t, smallCheckpoint(), data)
	id := slices.Index(must(w.tokenizer.Encode("é", 0))(t), int32(3+256+95))
	if id < 0 {
		t.Fatal("the piece before the long one has another id")
	}
	g := w.generate(t, "a", MaxTokens(1))
	if err := g.Force(3 + 256 + 96); err != nil {
		t.Fatal(err)
	}
	if piece := must(g.Next(background))(t); piece.Text != long {
		t.Errorf("found %d of %d bytes", len(piece.Text), len(long))
	}
}

func TestGenerateRefusesBadInputs(t *testing.T) {
	w := smallWorld(t)
	s := must(w.model.NewSession(ContextLength(4)))(t)
	defer s.Close()
	sampler := must(NewSampler(512))(t)
	defer sampler.Close()
	_, err := s.Generate(w.tokenizer, sampler, nil)
	expectCode(t, err, ErrState)
	_, err = s.Generate(w.tokenizer, sampler, make([]int32, 5))
	expectCode(t, err, ErrContext)
	_, err = s.Generate(w.tokenizer, sampler, []int32{-1})
	expectCode(t, err, ErrArgument)
	_, err = s.Generate(w.tokenizer, sampler, []int32{1}, MaxTokens(-1))
	expectCode(t, err, ErrArgument)
	other := must(NewSampler(100))(t)
	defer other.Close()
	_, err = s.Generate(w.tokenizer, other, []int32{1})
	expectCode(t, err, ErrArgument)
	exact := must(s.Generate(w.tokenizer, sampler, make([]int32, 4)))(t)
	defer exact.Close()
	if piece := must(exact.Next(background))(t); piece.Token == NoToken {
		t.Errorf("a prompt that fills the context: %+v", piece)
	}
}

func TestEndedContextStopsLoadPrefillAndGeneration(t *testing.T) {
	cause := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(background)
	cancel(cause)
	expect := func(err error, also error) {
		t.Helper()
		expectCode(t, err, ErrCancelled)
		if !errors.Is(err, also) {
			t.Errorf("not %v: %v", also, err)
		}
	}
	_, err := OpenModelBytes(ctx, smallCheckpoint())
	expect(err, context.Canceled)
	expect(err, cause)
	w := smallWorld(t)
	s := must(w.model.NewSession())(t)
	defer s.Close()
	expect(s.Append(ctx, []int32{1}, NoLogits), context.Canceled)
	g := w.generate(t, "the", MaxTokens(8))
	_, err = g.Next(ctx)
	expect(err, cause)
	for _, err := range g.All(ctx) {
		expect(err, cause)
	}
	deadline, stop := context.WithTimeout(background, time.Nanosecond)
	defer stop()
	_, err = g.Next(deadline)
	expect(err, context.DeadlineExceeded)
	if tokens, _ := collect(t, g); len(tokens) != 8 {
		t.Errorf("after the cancellations: %d tokens", len(tokens))
	}
}

func TestContextStopsALongPrefillAndALoadPromptly(t *testing.T) {
	large := checkpoint(shape{Dim: 512, HiddenDim: 1376, NLayers: 6, NHeads: 8, NKVHeads: 8, VocabSize: 2000, SeqLen: 2048}, 1)
	prompt := make([]int32, 2048)
	model := must(OpenModelBytes(background, large))(t)
	defer model.Close()
	session := must(model.NewSession())(t)
	defer session.Close()
	promptly := func(what string, after time.Duration, call func(context.Context) error) {
		ctx, cancel := context.WithCancel(background)
		defer cancel()
		var at time.Time
		timer := time.AfterFunc(after, func() { at = time.Now(); cancel() })
		defer timer.Stop()
		err := call(ctx)
		if err == nil {
			t.Logf("%s ended before the cancellation", what)
			return
		}
		expectCode(t, err, ErrCancelled)
		late := time.Since(at)
		t.Logf("%s stopped %v after the cancellation", what, late)
		if late > 2*time.Second {
			t.Errorf("%s stopped only %v after the cancellation", what, late)
		}
	}
	promptly("prefill", 50*time.Millisecond, func(ctx context.Context) error { return session.Append(ctx, prompt, LastLogits) })
	if n := must(session.Position())(t); n != 0 {
		t.Errorf("a cancelled append moved the session to %d", n)
	}
	promptly("load", time.Millisecond, func(ctx context.Context) error {
		m, err := OpenModelBytes(ctx, large)
		if err == nil {
			m.Close()
		}
		return err
	})
}
