package control

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/storetest"
)

// A command reaches the service of its data folder by a socket that is only for the user of the service. A socket that
// a killed service left behind is replaced, and that of a running one is not.
func TestCommandsReachTheService(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	storetest.Fails(t, storetest.Err(Call(t.Context(), dir, Request{})), "no running service")
	left, err := listen(Path(dir))
	storetest.Must(t, err)
	storetest.Fails(t, storetest.Err(listen(Path(dir))), "another service")
	left.(interface{ SetUnlinkOnClose(bool) }).SetUnlinkOnClose(false)
	left.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Listen(ctx, dir, slog.New(slog.DiscardHandler), func(_ context.Context, q Request) Answer {
			if q.Counters != nil {
				return Answer{Silent: []string{q.Counters.Label}}
			}
			return Answer{Error: "no such counter"}
		})
	}()
	var a Answer
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if a, err = Call(t.Context(), dir, Request{Counters: &firewall.CounterQuery{Label: "x"}}); err == nil {
			break
		}
	}
	if err != nil || len(a.Silent) != 1 || a.Silent[0] != "x" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := Call(t.Context(), dir, Request{Reset: &Reset{}}); err == nil || err.Error() != "no such counter" {
		t.Errorf("an error of the service: %v", err)
	}
	if file, err := os.Stat(Path(dir)); err != nil || file.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", file, err)
	}
	stop()
	<-ended
	if _, err := os.Stat(Path(dir)); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}
