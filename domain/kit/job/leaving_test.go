package job_test

import (
	"context"
	"testing"

	"castellan/domain/kit/job"
)

// A step that begins while the node leaves is awaited or refused: none is running after Wait. Only the race detector
// finds an unordered count in each run.
func TestLeaveAwaitsEveryStep(t *testing.T) {
	for range 200 {
		d := newDisk()
		r := d.runner(t, job.Kind{Name: "half", Step: half})
		leaving, leave := context.WithCancel(t.Context())
		r.Leaving = leaving
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if _, _, err := r.Step(t.Context(), "j1"); err != nil {
				t.Error(err)
			}
		}()
		leave()
		r.Wait(t.Context())
		if r.Busy("j1") {
			t.Fatal("a step is running after Wait")
		}
		<-ended
	}
}
