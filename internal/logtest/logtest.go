// Package logtest has a log for tests.
package logtest

import (
	"strings"
	"sync"
)

// Text is a log that several goroutines write and a test reads. The zero Text is empty.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write appends to the log. It never fails.
func (l *Text) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns the log since the last Reset.
func (l *Text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Reset empties the log.
func (l *Text) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}
