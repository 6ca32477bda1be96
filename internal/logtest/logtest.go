// Package logtest has a log for tests.
package logtest

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// Text is a log that several goroutines write and a test reads. The zero Text is empty.
type Text struct {
	mu   sync.Mutex
	text strings.Builder
}

// Default makes a log the default of slog until the test ends.
func Default(t testing.TB) *Text {
	t.Helper()
	log, former := &Text{}, slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(former) })
	return log
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
