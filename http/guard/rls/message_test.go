package rls

import (
	"context"
	"testing"
	"time"
	"unicode/utf8"
)

// Every call ends after ten seconds, or at the earlier deadline of its client.
func TestCallsAreBounded(t *testing.T) {
	begin := t.Context()
	within := func(d time.Duration) context.Context {
		ctx, cancel := context.WithTimeout(begin, d)
		t.Cleanup(cancel)
		return ctx
	}
	for _, c := range []struct {
		of    context.Context
		bound time.Duration
	}{{begin, 10 * time.Second}, {within(time.Hour), 10 * time.Second}, {within(time.Second), time.Second}} {
		ctx, err := hurried(c.of, nil)
		if err != nil {
			t.Fatal(err)
		}
		if end, bounded := ctx.Deadline(); !bounded || time.Until(end) > c.bound {
			t.Errorf("the call ends at %v (%v); it must end within %v", end, bounded, c.bound)
		}
	}
}

// FuzzMessage reads arbitrary bytes as a RateLimitRequest. Each key of an accepted message is text. The message is
// read in the same way when it is written again.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		"\x0a\x04shop\x12\x0c\x0a\x0a\x0a\x04user\x12\x02a|",
		"\x12\x0e\x0a\x09\x0a\x01k\x12\x04long\x1a\x00\x20\x00\x18\x03",
		"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x0d\x01\x02\x03", "\x09\x01\x02\x03\x04\x05\x06\x07", "\x0b",
		"\x00\x01", "\x12\x02\x20\x01",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		q, ok := readRequest(b)
		if !ok {
			return
		}
		again := appendText(nil, 1, []byte(q.domain))
		for _, d := range q.descriptors {
			var one []byte
			for _, e := range d.entries {
				if e.key == "" || !utf8.ValidString(e.key) {
					t.Fatalf("entry %q", e)
				}
				one = appendText(one, 1, appendText(appendText(nil, 1, []byte(e.key)), 2, []byte(e.value)))
			}
			again = appendText(again, 2, appendText(one, 3, appendNumber(nil, 1, d.hits)))
		}
		r, ok := readRequest(again)
		if !ok || r.domain != q.domain || len(r.descriptors) != len(q.descriptors) {
			t.Fatalf("%v and %v", q, r)
		}
		for i, d := range q.descriptors {
			if len(d.entries) != len(r.descriptors[i].entries) || d.hits != r.descriptors[i].hits {
				t.Fatalf("%v and %v", d, r.descriptors[i])
			}
		}
	})
}
