// Package cloop is what the tests need of C: the generation loop, to measure what the Go package adds to it, and the C library's
// memory kept together and returned to the system. A Loop is for one goroutine at a time.
package cloop

/*
#include <proofinfer.h>
#include <stdlib.h>
#include <time.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

// Freed memory that the C library keeps for later, a few megabytes for each thread that ever allocated, would look like a leak.
static void trim(void) {
#if defined(__GLIBC__)
	malloc_trim(0);
#endif
}

// Of several arenas, which threads get by chance, each keeps pieces that cannot be trimmed.
static void one_arena(void) {
#if defined(__GLIBC__)
	mallopt(M_ARENA_MAX, 1);
#endif
}

typedef struct {
	proofinfer_model *model;
	proofinfer_tokenizer *tokenizer;
	proofinfer_sampler *sampler;
} loop;

static void loop_close(loop *l) {
	proofinfer_sampler_free(l->sampler);
	proofinfer_tokenizer_free(l->tokenizer);
	proofinfer_model_free(l->model);
}

static int32_t loop_open(loop *l, const char *model, size_t model_bytes, const char *tokenizer, size_t tokenizer_bytes) {
	int64_t vocab_size = 0;
	int32_t status = proofinfer_model_open(model, model_bytes, NULL, NULL, &l->model, NULL);
	if (status == PROOFINFER_OK) status = proofinfer_model_get_i64(l->model, PROOFINFER_MODEL_VOCAB_SIZE, &vocab_size, NULL);
	if (status == PROOFINFER_OK)
		status = proofinfer_tokenizer_open(tokenizer, tokenizer_bytes, (int32_t)vocab_size, NULL, &l->tokenizer, NULL);
	if (status == PROOFINFER_OK) status = proofinfer_sampler_create((int32_t)vocab_size, NULL, &l->sampler, NULL);
	return status;
}

// Nanoseconds of `steps` calls after BOS, or -1.
static int64_t loop_run(loop *l, int32_t steps) {
	proofinfer_session *session = NULL;
	proofinfer_generation *generation = NULL;
	int32_t status, token = proofinfer_tokenizer_bos(l->tokenizer), stop;
	struct timespec from, to;
	char text[64];
	size_t needed;
	status = proofinfer_session_create(l->model, NULL, &session, NULL);
	if (status == PROOFINFER_OK)
		status = proofinfer_generation_create(session, l->tokenizer, l->sampler, &token, 1, NULL, &generation, NULL);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (; status == PROOFINFER_OK && steps > 0; steps--)
		status = proofinfer_generation_next(generation, NULL, &token, text, sizeof text, &needed, &stop, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	proofinfer_generation_free(generation);
	proofinfer_session_free(session);
	if (status != PROOFINFER_OK) return -1;
	return (int64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (to.tv_nsec - from.tv_nsec);
}
*/
import "C"

import (
	"errors"
	"time"
	"unsafe"
)

// Loop is a model and a tokenizer that C opened.
type Loop struct{ c C.loop }

// Open loads both files.
func Open(model, tokenizer string) (*Loop, error) {
	l := &Loop{}
	status := C.loop_open(&l.c, (*C.char)(unsafe.Pointer(unsafe.StringData(model))), C.size_t(len(model)),
		(*C.char)(unsafe.Pointer(unsafe.StringData(tokenizer))), C.size_t(len(tokenizer)))
	if status != C.PROOFINFER_OK {
		l.Close()
		return nil, errors.New(C.GoString(C.proofinfer_status_name(status)))
	}
	return l, nil
}

// Close frees both.
func (l *Loop) Close() { C.loop_close(&l.c) }

// Run generates greedily from BOS and gives the time of the steps alone.
func (l *Loop) Run(steps int) (time.Duration, error) {
	ns := C.loop_run(&l.c, C.int32_t(steps))
	if ns < 0 {
		return 0, errors.New("the C loop failed")
	}
	return time.Duration(ns), nil
}

// Trim gives freed memory back to the system.
func Trim() { C.trim() }

// OneArena keeps the C library's memory in one arena, so that how much is in use can be told from how much the process has.
func OneArena() { C.one_arena() }
