// Go-server streams completions of one model as server-sent events. See README.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"proofinfer.example/proofinfer"
)

const (
	mostBodyBytes    = 1 << 20
	mostTokens       = 4096
	defaultMaxTokens = 128
	shutdownTime     = 5 * time.Second // for requests that run when SIGTERM comes; then they are cancelled
)

// server shares one model among its requests. A request holds a place in line from its arrival to its end, and a slot while it is in the scheduler.
type server struct {
	model     *proofinfer.Model
	tokenizer *proofinfer.Tokenizer
	scheduler *proofinfer.Scheduler
	line      chan struct{}
	slots     chan struct{}

	completed, dropped, refused atomic.Int64
}

// request is what a client asks for: query parameters of a GET, or the JSON body of a POST.
type request struct {
	Prompt      string  `json:"prompt"`
	MaxTokens   int     `json:"max_tokens"`
	Temperature float64 `json:"temperature"`
	Seed        uint64  `json:"seed"`
}

func parseRequest(w http.ResponseWriter, r *http.Request) (request, error) {
	q := request{MaxTokens: defaultMaxTokens, Seed: 1}
	var err error
	if r.Method == http.MethodPost {
		err = json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBodyBytes)).Decode(&q)
	} else {
		err = q.parseQuery(r)
	}
	if err == nil && (q.MaxTokens < 1 || q.MaxTokens > mostTokens) {
		err = fmt.Errorf("max_tokens: expected 1 to %d, found %d", mostTokens, q.MaxTokens)
	}
	return q, err
}

func (q *request) parseQuery(r *http.Request) (err error) {
	values := r.URL.Query()
	q.Prompt = values.Get("prompt")
	if text := values.Get("max_tokens"); text != "" {
		q.MaxTokens, err = strconv.Atoi(text)
	}
	if text := values.Get("temperature"); text != "" && err == nil {
		q.Temperature, err = strconv.ParseFloat(text, 64)
	}
	if text := values.Get("seed"); text != "" && err == nil {
		q.Seed, err = strconv.ParseUint(text, 10, 64)
	}
	return err
}

func (s *server) completion(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodPost {
		w.Header().Set("Allow", "GET, POST")
		refuse(w, http.StatusMethodNotAllowed, errors.New("expected GET or POST"))
		return
	}
	q, err := parseRequest(w, r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	select {
	case s.line <- struct{}{}:
		defer func() { <-s.line }()
	default:
		s.refused.Add(1)
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, errors.New("too many requests are waiting"))
		return
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-r.Context().Done():
		s.dropped.Add(1)
		return
	}
	s.serve(w, r, q)
}

// serve runs one completion beside the others.
func (s *server) serve(w http.ResponseWriter, r *http.Request, q request) {
	prompt, err := s.tokenizer.Encode(q.Prompt, proofinfer.AddBOS)
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	job, err := s.scheduler.Submit(r.Context(), prompt, proofinfer.MaxTokens(q.MaxTokens), proofinfer.Temperature(q.Temperature), proofinfer.Seed(q.Seed))
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	defer job.Close()

	if err := stream(w, job); err != nil {
		s.dropped.Add(1)
		if r.Context().Err() == nil {
			log.Print(err)
		}
		return
	}
	s.completed.Add(1)
}

// stream sends each piece of text as an event of its own, and a last one that says why the generation stopped. The client's leaving stops it.
func stream(w http.ResponseWriter, job *proofinfer.Job) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	tokens, stop := 0, proofinfer.NotStopped
	for piece, err := range job.All() {
		if err != nil {
			return err
		}
		if piece.Token != proofinfer.NoToken && piece.Stop != proofinfer.StoppedToken {
			tokens++
		}
		stop = piece.Stop
		if piece.Text != "" {
			if err := send(w, out, map[string]any{"text": piece.Text}); err != nil {
				return err
			}
		}
	}
	return send(w, out, map[string]any{"done": true, "stop_reason": stop.String(), "tokens": tokens})
}

func send(w http.ResponseWriter, out *http.ResponseController, event any) error {
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
		return err
	}
	return out.Flush()
}

// statusOf tells the client's mistakes from the server's.
func statusOf(err error) int {
	if errors.Is(err, proofinfer.ErrArgument) || errors.Is(err, proofinfer.ErrContext) {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func refuse(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}

// status tells how many sessions there are now and how many requests wait for one.
func (s *server) status(w http.ResponseWriter, _ *http.Request) {
	sessions := len(s.slots)
	reply(w, http.StatusOK, map[string]int64{
		"sessions": int64(sessions), "waiting": int64(max(0, len(s.line)-sessions)),
		"completed": s.completed.Load(), "dropped": s.dropped.Load(), "refused": s.refused.Load(),
	})
}

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "address to listen on; port 0 takes a free one")
	modelPath := flag.String("model", "", "checkpoint")
	tokenizerPath := flag.String("tokenizer", "", "tokenizer file")
	sessions := flag.Int("sessions", 4, "most sessions at a time")
	waiting := flag.Int("waiting", 32, "most requests that wait for a session; more are refused with 503")
	threads := flag.Int("threads", 1, "threads that compute one call")
	flag.Parse()
	if err := run(*address, *modelPath, *tokenizerPath, *sessions, *waiting, *threads); err != nil {
		log.Fatal(err)
	}
}

func run(address, modelPath, tokenizerPath string, sessions, waiting, threads int) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	model, err := proofinfer.OpenModel(ctx, modelPath, proofinfer.Threads(threads))
	if err != nil {
		return err
	}
	defer model.Close()
	tokenizer, err := proofinfer.OpenTokenizer(tokenizerPath, model.VocabSize())
	if err != nil {
		return err
	}
	defer tokenizer.Close()
	scheduler, err := model.NewScheduler(tokenizer, proofinfer.MaxGenerations(sessions))
	if err != nil {
		return err
	}
	defer scheduler.Close()

	s := &server{model: model, tokenizer: tokenizer, scheduler: scheduler, line: make(chan struct{}, sessions+waiting), slots: make(chan struct{}, sessions)}
	mux := http.NewServeMux()
	mux.HandleFunc("/completion", s.completion)
	mux.HandleFunc("GET /status", s.status)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	return serveUntil(ctx, listener, mux)
}

// serveUntil serves until ctx ends, then lets the requests that run finish, for a while.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	requests, cancelRequests := context.WithCancel(context.Background())
	defer cancelRequests()
	web := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	late := time.AfterFunc(shutdownTime, cancelRequests)
	defer late.Stop()
	deadline, cancel := context.WithTimeout(context.Background(), 2*shutdownTime)
	defer cancel()
	if err := web.Shutdown(deadline); err != nil {
		return err
	}
	fmt.Println("stopped")
	return nil
}
