//go:build race || asan

package proofinfer

// raceOrSanitizer says that the tools keep memory of their own, so that the process's size tells nothing.
const raceOrSanitizer = true
