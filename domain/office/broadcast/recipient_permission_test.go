package broadcast_test

import (
	"encoding/json"
	"errors"
	"testing"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/persistence/persistencetest"
)

func (w *world) mayTell(caller, userID string) error {
	if userID == w.higher {
		return fault.New(fault.Forbidden, "%s holds fewer permissions", caller)
	}
	return nil
}

// A message whose job cannot be read is not sent. A recipient that is gone is left out, and one that cannot be
// read is tried again.
func TestRecipientsThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	for _, k := range w.Kinds() {
		broken := job.Job{ID: "j1", Params: []byte("{"), ActorID: "boss"}
		if ids, err := k.Items.Snapshot(t.Context(), broken, "", 10); err == nil || len(ids) != 0 {
			t.Errorf("%s: %q, %v", k.Name, ids, err)
		}
		if _, err := k.Items.Send(t.Context(), broken, "ada"); err == nil || job.IsLater(err) || errors.Is(err, job.Skip) {
			t.Errorf("%s: %v", k.Name, err)
		}
		whole := job.Job{ID: "j1", Params: []byte(`{"ids":["ada"]}`), ActorID: "boss"}
		if _, err := k.Items.Send(t.Context(), whole, "gone"); !errors.Is(err, job.Skip) {
			t.Errorf("%s to an account that is gone: %v", k.Name, err)
		}
		persistencetest.Exec(t, w.db, "ALTER TABLE users RENAME TO broken")
		if _, err := k.Items.Send(t.Context(), whole, "ada"); !job.IsLater(err) {
			t.Errorf("%s to an account that cannot be read: %v", k.Name, err)
		}
		persistencetest.Exec(t, w.db, "ALTER TABLE broken RENAME TO users")
	}
	if got := w.took(); got != "" {
		t.Errorf("sent to %s", got)
	}
}

// Without a device, or if devices cannot be read, a push is not sent. A mail that cannot be sent yet holds the whole
// notice back.
func TestPushWithoutDevices(t *testing.T) {
	w := newWorld(t)
	send := func(userID string, channels ...string) ([]commit.Write, error) {
		params, err := json.Marshal(map[string]any{"ids": []string{userID}, "channels": channels})
		storetest.Must(t, err)
		return w.Kinds()[0].Items.Send(t.Context(), job.Job{ID: "j1", Params: params, ActorID: "boss"}, userID)
	}
	if _, err := send("ben", parameter.Push); !errors.Is(err, job.Skip) {
		t.Errorf("without a device: %v", err)
	}
	if writes, err := send("ben", parameter.Push, parameter.InApp); err != nil || len(writes) != 1 {
		t.Errorf("in the application too: %v, %v", writes, err)
	}
	persistencetest.Exec(t, w.db, "ALTER TABLE device RENAME TO broken")
	if _, err := send("ben", parameter.Push); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("devices that cannot be read: %v", err)
	}
	persistencetest.Exec(t, w.db, "ALTER TABLE broken RENAME TO device")
	w.answers["ada@example.com"] = []error{&message.DeliveryError{Unsent: true, Err: errors.New("away")}}
	if writes, err := send("ada", parameter.Mail, parameter.InApp); !job.IsLater(err) || len(writes) != 0 {
		t.Errorf("a mail that was not sent: %v, %v", writes, err)
	}
	if writes, err := send("ada", parameter.Mail, parameter.InApp); err != nil || len(writes) != 1 ||
		w.took() != "ada@example.com" {
		t.Errorf("the second time: %v, %v", writes, err)
	}
}
