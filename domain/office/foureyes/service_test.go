package foureyes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
	"castellan/persistence"
	"castellan/persistence/kit"
	officestore "castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

const ttl = 15 * time.Minute

// office is the service with a requester and approvers, who have every permission and share no device.
type office struct {
	*foureyes.Service
	t       *testing.T
	db      *persistence.DB
	now     time.Time
	account challenge.Account // of every person
	live    bool
	shared  [2]string // the accounts with a device in common
	may     error
	ran     []string // executed requests
	fails   error    // error of the execution
}

func newOffice(t *testing.T) *office {
	db, ring := persistencetest.SQLite(t), keyringtest.Ring(t, time.Now)
	o := &office{t: t, db: db, now: time.UnixMilli(1_700_000_000_000).UTC(), live: true,
		account: challenge.Account{CV: 3, SV: 4}}
	o.Service = &foureyes.Service{Store: officestore.NewFourEyes(db), Seal: ring.Seal, Open: ring.Open, TTL: ttl,
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return o.now }},
		Account: func(_ context.Context, userID string) (challenge.Account, error) {
			if userID == "nobody" {
				return challenge.Account{}, fault.New(fault.RecordNotFound, "no such account")
			}
			return o.account, nil
		},
		Live: func(_, sessionID string, sv int64) bool { return o.live && sessionID == "s1" && sv == 4 },
		Shared: func(_ context.Context, a, b string) (bool, error) {
			return a == o.shared[0] && b == o.shared[1], nil
		},
		Run: func(_ context.Context, request json.RawMessage) (json.RawMessage, error) {
			o.ran = append(o.ran, string(request))
			return json.RawMessage(`{"id":7}`), o.fails
		},
		Secret: func(endpoint string) bool { return endpoint == "POST /keys" },
		Public: func(_ string, response json.RawMessage) (json.RawMessage, error) {
			return bytes.ReplaceAll(response, []byte(`,"key":"s3cret"`), nil), nil
		}}
	return o
}

// stand stores a request of the requester.
func (o *office) stand() foureyes.Request { return o.standAt("/x") }

func (o *office) standAt(path string) foureyes.Request {
	o.t.Helper()
	r, err := o.Submit(o.t.Context(), audit.By{UserID: "requester"}, foureyes.Draft{Method: "POST", Path: path,
		Summary: "X of u1", Request: json.RawMessage(`{"n":1}`), SessionID: "s1"})
	storetest.Must(o.t, err)
	return r
}

func (o *office) permit(foureyes.Request) error { return o.may }

// approve approves in a transaction, as the challenge does, and then records a failure.
func (o *office) approve(userID, id string) (r foureyes.Request, err error) {
	by := audit.By{UserID: userID}
	err = o.db.InTx(o.t.Context(), func(ctx context.Context) error {
		r, err = o.Approve(ctx, by, id, o.permit)
		return err
	})
	if err != nil {
		storetest.Must(o.t, o.db.InTx(o.t.Context(), func(ctx context.Context) error {
			return o.Fail(ctx, by, id, err)
		}))
	}
	return r, err
}

func (o *office) get(id string) foureyes.Request {
	o.t.Helper()
	return storetest.Value(o.Store.Get(o.t.Context(), id))(o.t)
}

// acts returns the audit rows of a request, oldest first.
func (o *office) acts(id string) (acts []string) {
	o.t.Helper()
	rows, err := kit.NewAudit(o.db).List(o.t.Context(), audit.Query{Target: id}, page.Query[audit.Place]{})
	storetest.Must(o.t, err)
	for _, r := range rows.Records {
		acts = append([]string{fmt.Sprint(r.Action, " ", r.ActorID, " ", r.UserID, " ", r.Outcome, " ", r.Detail)}, acts...)
	}
	return acts
}

// The requester never approves, and neither does an account that shares a device with the requester's.
func TestSamePersonDoesNotApprove(t *testing.T) {
	o := newOffice(t)
	r := o.stand()
	o.shared = [2]string{"twin", "requester"}
	for _, who := range []string{"requester", "twin"} {
		_, err := o.Judge(t.Context(), who, r.ID, o.permit)
		storetest.Wants(t, err, fault.Forbidden)
		storetest.Wants(t, storetest.Err(o.approve(who, r.ID)), fault.Forbidden)
	}
	if got := o.get(r.ID); got.Status != foureyes.Pending || len(o.ran) != 0 {
		t.Errorf("%s, carried out: %v", got.Status, o.ran)
	}
	_, err := o.Judge(t.Context(), "other", r.ID, o.permit)
	storetest.Must(t, err)
	_, err = o.approve("other", r.ID)
	storetest.Must(t, err)
	o.Shared = func(context.Context, string, string) (bool, error) { return false, errors.New("cannot be read") }
	storetest.Fails(t, storetest.Err(o.approve("other", o.stand().ID)), "")
}

// An approval executes the request once, and stores its sealed result.
func TestApprove(t *testing.T) {
	o := newOffice(t)
	r := o.stand()
	if want := (foureyes.Request{ID: r.ID, Method: "POST", Path: "/x", Summary: "X of u1", RequestedBy: "requester",
		RequestedAt: o.now, ExpiresAt: o.now.Add(ttl), Status: foureyes.Pending, Sealed: r.Sealed}); r.Sealed == nil {
		t.Error("the request is not sealed")
	} else {
		storetest.Same(t, r, want)
	}
	storetest.Equal(t, string(storetest.Value(o.Asked(o.get(r.ID)))(t)), `{"n":1}`)
	if result, err := o.Result(o.get(r.ID)); result != nil || err != nil {
		t.Errorf("a result before the approval: %s, %v", result, err)
	}
	o.may = fault.New(fault.Forbidden, "no permission")
	_, err := o.approve("other", r.ID)
	storetest.Wants(t, err, fault.Forbidden)
	o.may = nil
	storetest.Wants(t, storetest.Err(o.approve("other", "unknown")), fault.RecordNotFound)
	storetest.Wants(t, storetest.Err(o.Judge(t.Context(), "other", "unknown", o.permit)), fault.RecordNotFound)

	o.now = o.now.Add(ttl - time.Millisecond + 400*time.Microsecond)
	_, err = o.approve("other", r.ID)
	storetest.Must(t, err)
	got := o.get(r.ID)
	result, err := o.Result(got)
	if err != nil || string(result) != `{"id":7}` || got.Status != foureyes.Approved || got.DecidedBy != "other" ||
		!got.DecidedAt.Equal(o.now.Truncate(time.Millisecond)) || got.Sealed != nil || fmt.Sprint(o.ran) != `[{"n":1}]` {
		t.Errorf("%+v, result %s, %v, ran %v", got, result, err, o.ran)
	}
	if asked, err := o.Asked(got); asked != nil || err != nil {
		t.Errorf("asked for %s, %v", asked, err)
	}
	storetest.Wants(t, storetest.Err(o.approve("third", r.ID)), fault.InvalidState)
	storetest.Same(t, o.acts(r.ID), []string{"FOUR_EYES_REQUEST requester  success POST /x",
		"FOUR_EYES_APPROVE other requester success POST /x"})
}

// An expired request can be neither approved nor refused.
func TestExpired(t *testing.T) {
	o := newOffice(t)
	r := o.stand()
	o.now = r.ExpiresAt
	_, err := o.Judge(t.Context(), "other", r.ID, o.permit)
	storetest.Wants(t, err, fault.InvalidState)
	storetest.Wants(t, storetest.Err(o.approve("other", r.ID)), fault.InvalidState)
	_, err = o.Refuse(t.Context(), audit.By{UserID: "other"}, r.ID, "no", o.permit)
	storetest.Wants(t, err, fault.InvalidState)
	if asked, err := o.Asked(r); asked != nil || err != nil || len(o.ran) != 0 {
		t.Errorf("asked for %s, %v, ran %v", asked, err, o.ran)
	}
}

// A request is executed only if its requester still has the permission; otherwise it fails with the reason.
func TestRequesterPermissionIsCheckedAgain(t *testing.T) {
	for name, change := range map[string]func(o *office){
		"credentials": func(o *office) { o.account.CV++ },
		"sessions":    func(o *office) { o.account.SV++ },
		"session":     func(o *office) { o.live = false },
		"account": func(o *office) {
			o.Account = func(context.Context, string) (challenge.Account, error) {
				return o.account, fault.New(fault.RecordNotFound, "no such account")
			}
		},
	} {
		o := newOffice(t)
		r := o.stand()
		change(o)
		_, err := o.approve("other", r.ID)
		storetest.Wants(t, err, fault.Forbidden)
		got := o.get(r.ID)
		result, _ := o.Result(got)
		if got.Status != foureyes.Failed || len(o.ran) != 0 || got.DecidedBy != "other" ||
			string(result) != `{"code":"FORBIDDEN","message":"the requester no longer has the permission"}` {
			t.Errorf("%s: %+v, result %s, ran %v", name, got, result, o.ran)
		}
		storetest.Same(t, o.acts(r.ID)[1:], []string{"FOUR_EYES_FAIL other requester refused POST /x"})
	}
	o := newOffice(t)
	_, err := o.Submit(t.Context(), audit.By{UserID: "nobody"}, foureyes.Draft{})
	storetest.Wants(t, err, fault.RecordNotFound)
}

// A refusal during the execution ends the request; a technical error leaves it pending.
func TestFail(t *testing.T) {
	o := newOffice(t)
	r := o.stand()
	broken := errors.New("the database is away")
	for _, fails := range []error{broken, fault.New(fault.InvalidState, "the balance is too small")} {
		if got := o.get(r.ID).Status; got != foureyes.Pending {
			t.Fatalf("the request is %s", got)
		}
		o.fails = fails
		storetest.Is(t, storetest.Err(o.approve("other", r.ID)), fails, fails)
	}
	got := o.get(r.ID)
	if result, _ := o.Result(got); got.Status != foureyes.Failed ||
		string(result) != `{"code":"INVALID_STATE","message":"the balance is too small"}` {
		t.Errorf("%+v %s", got, result)
	}
	before := o.acts(r.ID)
	storetest.Must(t, o.db.InTx(t.Context(), func(ctx context.Context) error { // decided already
		return o.Fail(ctx, audit.By{UserID: "third"}, r.ID, fmt.Errorf("%w", errors.Join(o.fails)))
	}))
	o.account.CV++
	storetest.Wants(t, storetest.Err(o.approve("third", r.ID)), fault.InvalidState)
	storetest.Same(t, o.acts(r.ID), before)

	other := o.stand()
	o.Account = func(context.Context, string) (challenge.Account, error) { return challenge.Account{}, broken }
	if _, err := o.approve("other", other.ID); !errors.Is(err, broken) || o.get(other.ID).Status != foureyes.Pending {
		t.Errorf("%v, %s", err, o.get(other.ID).Status)
	}
}

// Two concurrent approvals that fail record one failure.
func TestFailOnce(t *testing.T) {
	o := newOffice(t)
	r := o.stand()
	o.fails = fault.New(fault.InvalidState, "no")
	var failure error
	_ = o.db.InTx(t.Context(), func(ctx context.Context) error {
		_, failure = o.Approve(ctx, audit.By{UserID: "a"}, r.ID, o.permit)
		return failure
	})
	for _, who := range []string{"a", "b"} {
		storetest.Must(t, o.db.InTx(t.Context(), func(ctx context.Context) error {
			return o.Fail(ctx, audit.By{UserID: who}, r.ID, failure)
		}))
	}
	if got := o.get(r.ID); got.DecidedBy != "a" || len(o.acts(r.ID)) != 2 {
		t.Errorf("%+v, %v", got, o.acts(r.ID))
	}
	err := o.db.InTx(t.Context(), func(ctx context.Context) error {
		return o.Fail(ctx, audit.By{UserID: "b"}, "unknown", failure)
	})
	storetest.Wants(t, err, fault.RecordNotFound)
}

// A sealed request that cannot be opened is not executed.
func TestUnreadableRequest(t *testing.T) {
	o := newOffice(t)
	r := o.stand()
	o.Open = func([]byte, []byte) ([]byte, error) { return nil, errors.New("no key") }
	if _, err := o.approve("other", r.ID); err == nil || o.get(r.ID).Status != foureyes.Pending {
		t.Errorf("%v, %s", err, o.get(r.ID).Status)
	}
	o.Open = func([]byte, []byte) ([]byte, error) { return []byte("{"), nil }
	storetest.Fails(t, storetest.Err(o.Asked(r)), "", "no error of a request that is no JSON")
}

// The requester may withdraw a request, and any other person needs the permission of its endpoint.
func TestRefuse(t *testing.T) {
	o := newOffice(t)
	o.may = fault.New(fault.Forbidden, "no permission")
	mine := o.stand()
	got := storetest.Value(o.Refuse(t.Context(), audit.By{UserID: "requester"}, mine.ID, "my mistake", o.permit))(t)
	if got.Status != foureyes.Refused || got.Reason != "my mistake" || got.DecidedBy != "requester" || got.Result != nil {
		t.Errorf("%+v", got)
	}
	storetest.Same(t, o.get(mine.ID), got)
	other := o.stand()
	_, err := o.Refuse(t.Context(), audit.By{UserID: "other"}, other.ID, "no", o.permit)
	storetest.Wants(t, err, fault.Forbidden)
	o.may = nil
	_, err = o.Refuse(t.Context(), audit.By{UserID: "other"}, other.ID, "no", o.permit)
	storetest.Must(t, err)
	_, err = o.Refuse(t.Context(), audit.By{UserID: "other"}, other.ID, "no", o.permit)
	storetest.Wants(t, err, fault.InvalidState)
	_, err = o.Refuse(t.Context(), audit.By{UserID: "other"}, "unknown", "no", o.permit)
	storetest.Wants(t, err, fault.RecordNotFound)
	storetest.Same(t, o.acts(other.ID)[1:], []string{"FOUR_EYES_REFUSE other requester success POST /x"})
	storetest.Wants(t, storetest.Err(o.approve("other", mine.ID)), fault.InvalidState)
}
