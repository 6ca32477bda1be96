package access_test

import (
	"testing"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/device/devicetest"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/delivery"
	"castellan/persistence/engine"
	"castellan/persistence/persistencetest"
)

func TestDeviceStore(t *testing.T) {
	persistencetest.RunBoth(t, devicetest.Run, func(db *persistence.DB) devicetest.Stores {
		return devicetest.Stores{Store: access.NewDevices(db), Users: access.NewUsers(db)}
	}, "users", "device", "device_proof")
}

// The list from which open pushes are read.
func TestPending(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, now := t.Context(), access.NewChallenges(db), time.Now()
		made := func(id string, user string, edit func(*challenge.Challenge)) {
			c := challenge.Challenge{ID: id, UserID: user, Action: "LOGIN", CreatedAt: engine.Millis(now),
				ExpiresAt: engine.Millis(now) + 1000, Body: challenge.Body{Subject: user, Commanded: true,
					Methods: []challenge.Method{{ID: "m" + id, Name: challenge.PUSH, Number: "42"}}}}
			if edit != nil {
				edit(&c)
			}
			storetest.Must(t, db.Commit(ctx, challenge.Insert{Challenge: c, Command: []byte("command " + id)}))
		}
		made("a", "u1", nil)
		made("b", "u1", func(c *challenge.Challenge) { c.CreatedAt++ })
		made("expired", "u1", func(c *challenge.Challenge) { c.ExpiresAt = engine.Millis(now) })
		made("done", "u1", func(c *challenge.Challenge) { c.State = challenge.Done })
		made("another's", "u2", nil)
		got, err := store.Pending(ctx, "u1", now)
		if err != nil || len(got) != 2 || got[0].ID != "b" || got[1].ID != "a" ||
			string(got[1].Command) != "command a" || got[1].Methods[0].Number != "42" || got[1].Version != 1 {
			t.Errorf("pending %+v, %v", got, err)
		}
		// Waking a device uses up no user's code.
		push := outbox.Message{ID: "p", UserID: "u1", Channel: message.Push, Destination: []byte("d"), Prefix: "p",
			CreatedAt: now, ExpiresAt: now.Add(time.Minute), LeaseUntil: now}
		storetest.Must(t, db.Commit(ctx, outbox.Add{Message: push}))
		n, err := delivery.NewOutbox(db).Usage(ctx, now.Add(time.Minute), "p")
		sent, err2 := delivery.NewOutbox(db).Sendings(ctx, "u1", now.Add(-time.Minute))
		if n != 0 || len(sent) != 0 || err != nil || err2 != nil {
			t.Errorf("%d, %v, %v, %v", n, sent, err, err2)
		}
		if claimed, err := delivery.NewOutbox(db).Claim(ctx, now.Add(time.Second), time.Minute, 10); err != nil ||
			len(claimed) != 1 {
			t.Errorf("claimed %v, %v", claimed, err)
		}
	})
}
