package app

import (
	"testing"
	"time"
)

func TestBacklogAge(t *testing.T) {
	var b backlog
	now := time.UnixMilli(1_700_000_000_000)
	if got := b.age(now); got != 0 {
		t.Errorf("an empty outbox is %v s old", got)
	}
	b.oldest.Store(now.UnixMilli() - 1500)
	if got := b.age(now); got != 1.5 {
		t.Errorf("%v s, want 1.5", got)
	}
}
