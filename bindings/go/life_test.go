package proofinfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"proofinfer.example/proofinfer/internal/cloop"
)

func TestUseAfterCloseIsErrClosed(t *testing.T) {
	w := smallWorld(t)
	session := must(w.model.NewSession())(t)
	sampler := must(NewSampler(512))(t)
	stream := must(w.tokenizer.NewStream(NoToken))(t)
	batch := must(w.model.NewBatch(4))(t)
	g := must(session.Generate(w.tokenizer, sampler, []int32{1}))(t)
	open := must(w.model.NewSession())(t)
	defer open.Close()
	for _, handle := range []io.Closer{w.model, w.tokenizer, session, sampler, stream, batch, g} {
		for range 3 {
			if err := handle.Close(); err != nil {
				t.Errorf("%T.Close: %v", handle, err)
			}
		}
	}
	last := func(results ...any) error { err, _ := results[len(results)-1].(error); return err }
	for name, err := range map[string]error{
		"Model.NewSession":      last(w.model.NewSession()),
		"Model.NewBatch":        last(w.model.NewBatch(1)),
		"Model.Tensors":         last(w.model.Tensors()),
		"Tokenizer.Encode":      last(w.tokenizer.Encode("a", 0)),
		"Tokenizer.Decode":      last(w.tokenizer.Decode([]int32{1})),
		"Tokenizer.DecodeToken": last(w.tokenizer.DecodeToken(NoToken, 1, false)),
		"Tokenizer.Piece":       last(w.tokenizer.Piece(1)),
		"Tokenizer.NewStream":   last(w.tokenizer.NewStream(NoToken)),
		"Stream.Push":           last(stream.Push(1)),
		"Stream.Flush":          last(stream.Flush()),
		"Session.Append":        session.Append(context.Background(), []int32{1}, NoLogits),
		"Session.Rewind":        session.Rewind(0),
		"Session.Logits":        last(session.Logits(0)),
		"Session.ViewLogits":    session.ViewLogits(0, nil),
		"Session.Position":      last(session.Position()),
		"Session.MemoryBytes":   last(session.MemoryBytes()),
		"Session.Tokens":        last(session.Tokens()),
		"Session.Generate":      last(session.Generate(w.tokenizer, sampler, []int32{1})),
		"open Session.Generate": last(open.Generate(w.tokenizer, sampler, []int32{1})),
		"Batch.Add":             batch.Add(open, 1, false),
		"Batch.Evaluate":        batch.Evaluate(context.Background()),
		"Batch.Clear":           batch.Clear(),
		"Sampler.Sample":        last(sampler.Sample(make([]float32, 512))),
		"Sampler.Reseed":        sampler.Reseed(1),
		"Generation.Next":       last(g.Next(context.Background())),
		"Generation.Force":      g.Force(1),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	for _, err := range g.All(context.Background()) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Generation.All after Close: %v", err)
		}
	}
	if w.model.VocabSize() != 512 || w.tokenizer.BOS() != 1 || session.ContextLength() != 256 {
		t.Error("what was read at load is gone after Close")
	}
	var zero Model
	if _, err := zero.NewSession(); !errors.Is(err, ErrClosed) || zero.Close() != nil {
		t.Errorf("a zero Model: %v", err)
	}
}

func TestHandlesCloseInEveryOrder(t *testing.T) {
	want := ""
	order := []int{0, 1, 2, 3}
	permute(order, 0, func() {
		w := smallWorld(t)
		session := must(w.model.NewSession())(t)
		sampler := must(NewSampler(512, Temperature(1)))(t)
		g := must(session.Generate(w.tokenizer, sampler, []int32{1, 2}, MaxTokens(5), StopTokens()))(t)
		handles := []io.Closer{w.model, w.tokenizer, session, sampler}
		text := ""
		for i := range 5 {
			if i < len(order) {
				handles[order[i]].Close()
			}
			text += must(g.Next(context.Background()))(t).Text
		}
		g.Close()
		if want == "" {
			want = text
		}
		if text != want {
			t.Errorf("closing in the order %v gave %q instead of %q", order, text, want)
		}
	})
}

func permute(order []int, from int, visit func()) {
	if from == len(order) {
		visit()
	}
	for i := from; i < len(order); i++ {
		order[from], order[i] = order[i], order[from]
		permute(order, from+1, visit)
		order[from], order[i] = order[i], order[from]
	}
}

func TestCloseInsideTheLoopEndsIt(t *testing.T) {
	w := smallWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := w.generate(t, "the", StopTokens())
	steps := 0
	for _, err := range g.All(ctx) {
		steps++
		if steps == 1 {
			if err != nil {
				t.Fatal(err)
			}
			g.Close()
		} else if !errors.Is(err, ErrClosed) {
			t.Fatalf("step %d after Close: %v", steps, err)
		}
	}
	if steps != 2 {
		t.Errorf("%d steps", steps)
	}
}

func TestEightGoroutinesShareOneModel(t *testing.T) {
	w := smallWorld(t, Threads(2))
	want := make([][]int32, 8)
	for i := range want {
		want[i] = must(idsFromBOS(w, 30, Temperature(1), Seed(uint64(i))))(t)
	}
	var group sync.WaitGroup
	for i := range want {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 3 {
				found, err := idsFromBOS(w, 30, Temperature(1), Seed(uint64(i)))
				if err != nil || !slices.Equal(found, want[i]) {
					t.Errorf("goroutine %d: %v\nexpected %v\nfound    %v", i, err, want[i], found)
				}
			}
		}()
	}
	group.Wait()
}

func TestASecondGoroutineGetsErrBusy(t *testing.T) {
	w := smallWorld(t)
	session := must(w.model.NewSession())(t)
	defer session.Close()
	g := w.generate(t, "the", StopTokens())
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 50 {
				if err := session.Append(context.Background(), []int32{1, 2, 3}, NoLogits); err != nil && !errors.Is(err, ErrBusy) && !errors.Is(err, ErrContext) {
					t.Error(err)
				}
				if err := session.Rewind(0); err != nil && !errors.Is(err, ErrBusy) {
					t.Error(err)
				}
				if _, err := g.Next(context.Background()); err != nil && !errors.Is(err, ErrBusy) {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
}

func TestCloseDuringACallIsSafe(t *testing.T) {
	for range 50 {
		m := must(OpenModelBytes(context.Background(), smallCheckpoint()))(t)
		session := must(m.NewSession())(t)
		var group sync.WaitGroup
		for range 4 {
			group.Add(2)
			go func() {
				defer group.Done()
				err := session.Append(context.Background(), []int32{1, 2, 3, 4, 5, 6, 7, 8}, LastLogits)
				if err != nil && !errors.Is(err, ErrClosed) && !errors.Is(err, ErrBusy) {
					t.Error(err)
				}
			}()
			go func() {
				defer group.Done()
				runtime.Gosched()
				session.Close()
				m.Close()
			}()
		}
		group.Wait()
	}
}

func TestForgottenHandlesAreFreed(t *testing.T) {
	freed := make(chan struct{})
	func() {
		owner := new(Model)
		owner.h = newHandle(owner, nil, func(unsafe.Pointer) { close(freed) })
	}()
	deadline := time.After(10 * time.Second)
	for {
		runtime.GC()
		select {
		case <-freed:
			return
		case <-deadline:
			t.Fatal("nothing was freed")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func TestNoGoroutineIsLeftBehind(t *testing.T) {
	w := smallWorld(t)
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithCancel(context.Background())
	for i := range 100 {
		g := w.generate(t, "the", MaxTokens(4))
		for range g.All(ctx) {
			break
		}
		short, stop := context.WithTimeout(ctx, time.Duration(i)*20*time.Microsecond)
		for range g.All(short) {
		}
		stop()
		g.Close()
	}
	cancel()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// stressTime is 60 s where PROOFINFER_LONG is set, else 10 s, or 1 s with -short.
func stressTime() time.Duration {
	switch {
	case os.Getenv("PROOFINFER_LONG") != "":
		return 60 * time.Second
	case testing.Short():
		return time.Second
	}
	return 10 * time.Second
}

// residentKiB is the memory of this process.
func residentKiB(t *testing.T) int {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Skipf("SKIPPED[proc]: memory is read from /proc: %v", err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kib int
		if strings.HasPrefix(lines.Text(), "VmRSS:") {
			fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kib)
			return kib
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// growthKiB is what the process may grow by between the first third of the stress and its end: the allocators' slack, as much as
// 13 leaked models of the thousands that are opened.
const growthKiB = 8 << 10

func TestStress(t *testing.T) {
	shared := smallWorld(t)
	live := liveHandles.Load()
	stressPhase(t, shared, stressTime()/3, 1)
	warm := settledKiB(t, live)
	stressPhase(t, shared, stressTime()*2/3, 2)
	after := settledKiB(t, live)
	t.Logf("%v: memory %d KiB after a third, %d KiB at the end", stressTime(), warm, after)
	if after <= warm+growthKiB || raceOrSanitizer {
		return
	}
	// Slack comes once, a leak again.
	stressPhase(t, shared, stressTime()*2/3, 3)
	if again := settledKiB(t, live); again > after+growthKiB {
		t.Errorf("memory grew from %d to %d, then to %d KiB", warm, after, again)
	}
}

// stressPhase runs rounds in eight goroutines.
func stressPhase(t *testing.T, shared world, length time.Duration, seed uint64) {
	end := time.Now().Add(length)
	var rounds atomic.Int64
	var group sync.WaitGroup
	for i := range uint64(8) {
		group.Add(1)
		go func() {
			defer group.Done()
			random := rand.New(rand.NewPCG(seed, i))
			for ; time.Now().Before(end) && !t.Failed(); rounds.Add(1) {
				if err := stressRound(shared, random); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	t.Logf("%d rounds in %v", rounds.Load(), length)
}

// settledKiB is the memory after the garbage collector closed the handles that were left to it.
func settledKiB(t *testing.T, live int64) int {
	for range 1000 {
		debug.FreeOSMemory()
		if liveHandles.Load() == live {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if left := liveHandles.Load() - live; left != 0 {
		t.Errorf("%d handles were never freed", left)
	}
	cloop.Trim()
	return residentKiB(t)
}

// stressRound opens, generates, cancels and closes in random order, and leaves some handles to the garbage collector.
func stressRound(shared world, random *rand.Rand) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	model := shared.model
	var handles []io.Closer
	if random.IntN(4) == 0 {
		own, err := OpenModelBytes(ctx, smallCheckpoint())
		if err != nil {
			return err
		}
		model, handles = own, append(handles, own)
	}
	session, err := model.NewSession(ContextLength(64))
	if err != nil {
		return err
	}
	sampler, err := NewSampler(512, Temperature(1), Seed(random.Uint64()))
	if err != nil {
		return err
	}
	g, err := session.Generate(shared.tokenizer, sampler, []int32{1, random.Int32N(512), 5}, StopTokens())
	if err != nil {
		return err
	}
	handles = append(handles, session, sampler, g)
	if random.IntN(8) == 0 {
		if _, err := OpenModelBytes(ctx, smallCheckpoint()[:random.IntN(1000)]); err == nil {
			return errors.New("a cut file was loaded")
		}
	}
	var group sync.WaitGroup
	defer group.Wait()
	if random.IntN(3) == 0 {
		group.Add(1)
		delay := time.Duration(random.IntN(3000)) * time.Microsecond
		go func() { defer group.Done(); time.Sleep(delay); cancel() }()
	}
	steps := random.IntN(80)
	for _, err := range g.All(ctx) {
		if errors.Is(err, ErrCancelled) || errors.Is(err, ErrClosed) {
			break
		}
		if err != nil {
			return err
		}
		if steps--; steps < 0 {
			break
		}
		if random.IntN(200) == 0 {
			g.Close()
		}
	}
	random.Shuffle(len(handles), func(i, j int) { handles[i], handles[j] = handles[j], handles[i] })
	for _, h := range handles {
		if random.IntN(16) != 0 {
			h.Close()
		}
	}
	return nil
}
