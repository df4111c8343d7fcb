//go:build !race && !asan

package proofinfer

const raceOrSanitizer = false
