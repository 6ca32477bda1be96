package replace_test

import (
	"net/netip"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/replace"
	"castellan/persistence/persistencetest"
)

var from = challenge.Starter{IP: "192.0.2.7", RequestID: "r1", Country: "TR"}

func (w *world) reset(phone string) (challenge.Started, error) {
	return w.StartReset(w.t.Context(), replace.ResetRequest{CountryCode: "090", Phone: phone}, from)
}

func (w *world) update(tokenID, next string) error {
	return w.Update(w.t.Context(), replace.UpdateRequest{TokenID: tokenID, Password: next, Verify: next, From: from})
}

func TestStartResetRefuses(t *testing.T) {
	w := newWorld(t)
	for _, r := range []replace.ResetRequest{{CountryCode: "x", Phone: "5320000001"}, {CountryCode: "90", Phone: "x"}} {
		_, err := w.StartReset(t.Context(), r, from)
		storetest.Wants(t, err, fault.InvalidField)
		storetest.Wants(t, r.Validate(), fault.InvalidField)
	}
	storetest.Must(t, replace.ResetRequest{CountryCode: "90", Phone: "5320000001"}.Validate())
	_, err := w.reset("5329999999")
	storetest.Wants(t, err, fault.Unavailable)
	w.refuse = []error{fault.New(fault.MFANotAvailable, "no mail")}
	_, err = w.reset("5320000001") // its challenge cannot be created, so it gets a decoy
	if storetest.Must(t, err); w.started[0].Decoy != "subject of +905320000001" {
		t.Errorf("%+v", w.started[0])
	}
	w.refuse = []error{commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, nil}
	_, err = w.reset("5320000001")
	storetest.Must(t, err)
	w.refuse = []error{commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, nil}
	_, err = w.reset("5320000001")
	storetest.Wants(t, err, fault.Unavailable)
	w.refuse = []error{fault.New(fault.Overloaded, "full")}
	_, err = w.reset("5320000001")
	storetest.Wants(t, err, fault.Overloaded)
}

// A refused request leaves the token unchanged.
func TestUpdateRefuses(t *testing.T) {
	w := newWorld(t)
	id := w.token()
	storetest.Wants(t, w.update("unknown", second), fault.TokenRevoked)
	for columns, back := range map[string]string{"cv = cv + 1": "cv = cv - 1", "status = 'passive'": "status = 'active'",
		"demo = true": "demo = false", "id = 'x'": ""} {
		w.set(columns)
		storetest.Wants(t, w.update(id, second), fault.TokenRevoked)
		if back == "" {
			persistencetest.Exec(t, w.db, "UPDATE users SET id = ? WHERE id = 'x'", w.user.ID)
		} else {
			w.set(back)
		}
	}
	w.now = w.now.Add(10 * time.Minute)
	storetest.Wants(t, w.update(id, second), fault.TokenExpired)
	w.now = w.now.Add(-time.Millisecond)
	w.set("demo = true")
	w.Dev = true
	storetest.Must(t, w.update(id, second))
}

// Each caller takes a place of its site in the queue of hashes.
func TestPlaces(t *testing.T) {
	w := newWorld(t)
	var asked []netip.Addr
	w.Place = func(from client.Origin) string { asked = append(asked, from.Addr); return "" }
	storetest.Must(t, w.update(w.token(), second))
	if len(asked) != 1 || asked[0].String() != "192.0.2.7" {
		t.Errorf("%v", asked)
	}
	full, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Slots: 1, Queue: 0, Wait: time.Millisecond})
	storetest.Must(t, err)
	w.Hasher = full
	place, err := full.Admit(password.Caller{})
	storetest.Must(t, err)
	defer place.Leave()
	for range 300 {
		if p, err := full.Admit(password.Caller{}); err == nil {
			defer p.Leave()
		}
	}
	storetest.Wants(t, w.update("x", second), fault.Overloaded)
	_, err = w.prepare(first, second)
	storetest.Wants(t, err, fault.Overloaded)
}
