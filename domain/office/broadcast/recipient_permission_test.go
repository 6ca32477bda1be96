package broadcast_test

import (
	"strings"
	"testing"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/fault"
	"castellan/domain/office/broadcast"
)

func (w *world) mayTell(caller, userID string) error {
	if userID == w.higher {
		return fault.New(fault.Forbidden, "%s holds fewer permissions", caller)
	}
	return nil
}

// A recipient with more permissions than the caller gets neither an SMS nor a notice.
func TestHigherRecipient(t *testing.T) {
	w := newWorld(t)
	w.higher = "ada"
	refused := "ada:failed(boss holds fewer permissions)"
	if got := w.finish(w.text(broadcast.SMS{UserIDs: []string{"ada", "cem"}}).JobID); got != refused+" cem:done" {
		t.Error(got)
	}
	if got := w.took(); got != "+90cem" {
		t.Error(got)
	}
	n := broadcast.Notice{Message: notification.Message{Title: "T", Body: "B"}, UserIDs: []string{"ada", "ben"}}
	if got := w.finish(w.notify(n).JobID); got != refused+" ben:done" {
		t.Error(got)
	}
	if sent, in := w.took(), w.inApp("ada"); strings.Contains(sent, "ada") || in != 0 {
		t.Error(sent, in)
	}
}
