// Package committest is what the suites of several stores share.
package committest

import (
	"sync"
	"testing"

	"castellan/domain/fault"
)

// Race runs do n times at once and returns how often it succeeded; every failure
// must have the code.
func Race(t *testing.T, n int, code fault.Code, do func(i int) error) (won int) {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			err := do(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if fault.CodeOf(err) != code {
				t.Errorf("got %v, want %s", err, code)
			}
		})
	}
	close(start)
	wg.Wait()
	return won
}
