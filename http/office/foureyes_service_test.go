package office_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
	"castellan/persistence/kit"
)

func (o *foureyesOffice) permit(foureyes.Request) error { return o.may }

// approve approves in a transaction, as the challenge does, and then records a failure.
func (o *foureyesOffice) approve(userID, id string) (r foureyes.Request, err error) {
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

func (o *foureyesOffice) get(id string) foureyes.Request {
	o.t.Helper()
	return storetest.Value(o.Store.Get(o.t.Context(), id))(o.t)
}

// acts returns the audit rows of a request, oldest first.
func (o *foureyesOffice) acts(id string) (acts []string) {
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
	r := o.submit("/things")
	o.shared = [2]string{"twin", "clerk"}
	for _, who := range []string{"clerk", "twin"} {
		storetest.Wants(t, storetest.Err(o.Judge(t.Context(), who, r.ID, o.permit)), fault.Forbidden)
		storetest.Wants(t, storetest.Err(o.approve(who, r.ID)), fault.Forbidden)
	}
	if got := o.get(r.ID); got.Status != foureyes.Pending || len(o.ran) != 0 {
		t.Errorf("%s, carried out: %v", got.Status, o.ran)
	}
	_, err := o.Judge(t.Context(), "other", r.ID, o.permit)
	storetest.Must(t, err)
	storetest.Must(t, storetest.Err(o.approve("other", r.ID)))
	o.Shared = func(context.Context, string, string) (bool, error) { return false, errors.New("cannot be read") }
	storetest.Fails(t, storetest.Err(o.approve("other", o.submit("/things").ID)), "")
}

// An approval executes the request once, and stores its sealed result.
func TestApprovalExecutesOnce(t *testing.T) {
	o := newOffice(t)
	r := o.submit("/things")
	if want := (foureyes.Request{ID: r.ID, Method: "POST", Path: "/things", Summary: "THING_ADD", RequestedBy: "clerk",
		RequestedAt: o.now, ExpiresAt: o.now.Add(o.TTL), Status: foureyes.Pending, Sealed: r.Sealed}); r.Sealed == nil {
		t.Error("the request is not sealed")
	} else {
		storetest.Same(t, r, want)
	}
	storetest.Equal(t, string(storetest.Value(o.Asked(o.get(r.ID)))(t)), `{"n":2}`)
	storetest.Equal(t, len(storetest.Value(o.Result(o.get(r.ID)))(t)), 0, "a result before the approval")
	o.may = fault.New(fault.Forbidden, "no permission")
	_, err := o.approve("other", r.ID)
	storetest.Wants(t, err, fault.Forbidden)
	o.may = nil
	storetest.Wants(t, storetest.Err(o.approve("other", "unknown")), fault.RecordNotFound)
	storetest.Wants(t, storetest.Err(o.Judge(t.Context(), "other", "unknown", o.permit)), fault.RecordNotFound)

	o.now = o.now.Add(o.TTL - time.Millisecond + 400*time.Microsecond)
	storetest.Must(t, storetest.Err(o.approve("other", r.ID)))
	got := o.get(r.ID)
	result, err := o.Result(got)
	if err != nil || string(result) != `{"data":{"id":7}}` || got.Status != foureyes.Approved ||
		got.DecidedBy != "other" || !got.DecidedAt.Equal(o.now.Truncate(time.Millisecond)) || got.Sealed != nil ||
		fmt.Sprint(o.ran) != `[{"n":2}]` {
		t.Errorf("%+v, result %s, %v, ran %v", got, result, err, o.ran)
	}
	storetest.Equal(t, len(storetest.Value(o.Asked(got))(t)), 0, "to execute")
	storetest.Wants(t, storetest.Err(o.approve("third", r.ID)), fault.InvalidState)
	storetest.Same(t, o.acts(r.ID), []string{"FOUR_EYES_REQUEST clerk  success POST /things",
		"FOUR_EYES_APPROVE other clerk success POST /things"})
}

// An expired request can be neither approved nor refused.
func TestExpiredRequest(t *testing.T) {
	o := newOffice(t)
	r := o.submit("/things")
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
	for name, change := range map[string]func(o *foureyesOffice){
		"credentials": func(o *foureyesOffice) { o.account.CV++ },
		"sessions":    func(o *foureyesOffice) { o.account.SV++ },
		"session":     func(o *foureyesOffice) { o.live = false },
		"account": func(o *foureyesOffice) {
			o.Account = func(context.Context, string) (challenge.Account, error) {
				return o.account, fault.New(fault.RecordNotFound, "no such account")
			}
		},
	} {
		o := newOffice(t)
		r := o.submit("/things")
		change(o)
		storetest.Wants(t, storetest.Err(o.approve("other", r.ID)), fault.Forbidden)
		got := o.get(r.ID)
		result, _ := o.Result(got)
		if got.Status != foureyes.Failed || len(o.ran) != 0 || got.DecidedBy != "other" ||
			string(result) != `{"code":"FORBIDDEN","message":"the requester no longer has the permission"}` {
			t.Errorf("%s: %+v, result %s, ran %v", name, got, result, o.ran)
		}
		storetest.Same(t, o.acts(r.ID)[1:], []string{"FOUR_EYES_FAIL other clerk refused POST /things"})
	}
	o := newOffice(t)
	_, err := o.Submit(t.Context(), audit.By{UserID: "unknown"}, foureyes.Draft{})
	storetest.Wants(t, err, fault.RecordNotFound)
}

// A refusal during the execution ends the request; a technical error leaves it pending.
func TestFailedRequest(t *testing.T) {
	o := newOffice(t)
	r := o.submit("/things")
	broken := errors.New("the database is away")
	for _, fails := range []error{broken, fault.New(fault.InvalidState, "the balance is too small")} {
		storetest.Equal(t, o.get(r.ID).Status, foureyes.Pending)
		o.refusal = fails
		storetest.Is(t, storetest.Err(o.approve("other", r.ID)), fails, fails)
	}
	got := o.get(r.ID)
	if result, _ := o.Result(got); got.Status != foureyes.Failed ||
		string(result) != `{"code":"INVALID_STATE","message":"the balance is too small"}` {
		t.Errorf("%+v %s", got, result)
	}
	before := o.acts(r.ID)
	storetest.Must(t, o.db.InTx(t.Context(), func(ctx context.Context) error { // decided already
		return o.Fail(ctx, audit.By{UserID: "third"}, r.ID, fmt.Errorf("%w", errors.Join(o.refusal)))
	}))
	o.account.CV++
	storetest.Wants(t, storetest.Err(o.approve("third", r.ID)), fault.InvalidState)
	storetest.Same(t, o.acts(r.ID), before)

	other := o.submit("/things")
	o.Account = func(context.Context, string) (challenge.Account, error) { return challenge.Account{}, broken }
	if _, err := o.approve("other", other.ID); !errors.Is(err, broken) || o.get(other.ID).Status != foureyes.Pending {
		t.Errorf("%v, %s", err, o.get(other.ID).Status)
	}
}

// Two concurrent approvals that fail record one failure.
func TestFailedRequestOnce(t *testing.T) {
	o := newOffice(t)
	r := o.submit("/things")
	o.refusal = fault.New(fault.InvalidState, "no")
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

const fetched = `{"name":"wallet","key":"s3cret"}`

// fetch fetches the response of a request.
func (o *foureyesOffice) fetch(userID, id string) (foureyes.Request, string, error) {
	r, answer, err := o.Fetch(o.t.Context(), audit.By{UserID: userID}, id,
		func(_ context.Context, request json.RawMessage) (json.RawMessage, error) {
			o.ran = append(o.ran, string(request))
			return json.RawMessage(fetched), o.refusal
		})
	return r, string(answer), err
}

// approved stores an approved request whose response holds a secret.
func (o *foureyesOffice) approved() foureyes.Request {
	o.t.Helper()
	return storetest.Value(o.approve("other", o.submit("/keys").ID))(o.t)
}

// An approval does not execute a request whose response holds a secret. Its requester does, once, and the stored result
// lacks the secret (D-EXT-08).
func TestSecretIsFetchedByRequester(t *testing.T) {
	o := newOffice(t)
	pending := o.submit("/keys")
	_, _, err := o.fetch("clerk", pending.ID)
	storetest.Wants(t, err, fault.InvalidState)
	r := storetest.Value(o.approve("other", pending.ID))(t)
	storetest.Same(t, o.get(r.ID), r)
	if asked, err := o.Asked(r); len(o.ran) != 0 || r.Status != foureyes.Approved || r.Result != nil || !r.Fetchable() ||
		string(asked) != `{"n":2}` || err != nil {
		t.Errorf("%+v, ran %v, asked for %s, %v", r, o.ran, asked, err)
	}
	for _, c := range []struct {
		who, id string
		want    fault.Code
	}{{"other", r.ID, fault.Forbidden}, {"third", r.ID, fault.Forbidden}, {"clerk", "unknown", fault.RecordNotFound},
		{"clerk", o.submit("/things").ID, fault.InvalidState}} {
		_, answer, err := o.fetch(c.who, c.id)
		if storetest.Wants(t, err, c.want); answer != "" {
			t.Errorf("%s got %s", c.who, answer)
		}
	}
	o.live, o.account.SV = false, 9 // the requester has logged in again
	o.refusal = fault.New(fault.RecordAlreadyExist, "the name is taken")
	_, answer, err := o.fetch("clerk", r.ID)
	if storetest.Wants(t, err, fault.RecordAlreadyExist); answer != "" || !o.get(r.ID).Fetchable() {
		t.Errorf("a refusal ended the request: %+v, %s", o.get(r.ID), answer)
	}
	o.refusal = nil
	_, answer, err = o.fetch("clerk", r.ID)
	storetest.Must(t, err)
	got := o.get(r.ID)
	result, err := o.Result(got)
	if answer != fetched || string(result) != `{"data":{}}` || err != nil || got.Sealed != nil || got.Fetchable() ||
		got.Status != foureyes.Approved || got.DecidedBy != "other" {
		t.Errorf("%s, then %+v with %s, %v", answer, got, result, err)
	}
	_, _, err = o.fetch("clerk", r.ID)
	storetest.Wants(t, err, fault.InvalidState)
	storetest.Equal(t, len(o.ran), 2, o.ran)
	storetest.Same(t, o.acts(r.ID)[1:], []string{"FOUR_EYES_APPROVE other clerk success POST /keys",
		"FOUR_EYES_FETCH clerk clerk success POST /keys"})
}

// An approval that was not fetched ends after 24 hours.
func TestUnfetchedApprovalExpires(t *testing.T) {
	o := newOffice(t)
	r := o.approved()
	o.now = r.DecidedAt.Add(foureyes.FetchTime)
	_, _, err := o.fetch("clerk", r.ID)
	storetest.Wants(t, err, fault.InvalidState)
	if got := o.get(r.ID).At(o.now); got.Status != foureyes.Expired || len(o.ran) != 0 {
		t.Errorf("%+v, ran %v", got, o.ran)
	}
	_, err = o.Refuse(t.Context(), audit.By{UserID: "other"}, r.ID, "late", o.permit)
	storetest.Wants(t, err, fault.InvalidState)
	o.now = o.now.Add(-time.Millisecond)
	_, answer, err := o.fetch("clerk", r.ID)
	if storetest.Must(t, err); answer != fetched {
		t.Error(answer)
	}
}

// A change of the requester's credentials, such as a reset of the password by a thief, ends the fetch. So does a
// rejection after the approval.
func TestFetchIsRefused(t *testing.T) {
	o := newOffice(t)
	r := o.approved()
	o.account.CV++
	_, _, err := o.fetch("clerk", r.ID)
	if storetest.Wants(t, err, fault.Forbidden); !strings.Contains(err.Error(), "withdraw the request") {
		t.Errorf("%v does not say what to do", err)
	}
	o.account.CV--
	got, err := o.Refuse(t.Context(), audit.By{UserID: "third"}, r.ID, "no", o.permit)
	if storetest.Must(t, err); got.Status != foureyes.Refused || got.Sealed != nil {
		t.Errorf("%+v", got)
	}
	_, _, err = o.fetch("clerk", r.ID)
	storetest.Wants(t, err, fault.InvalidState)
	storetest.Equal(t, len(o.ran), 0, o.ran)
}

// A result that version 0.9 stored is shown without its secret.
func TestStoredSecretIsNotShown(t *testing.T) {
	o := newOffice(t)
	r := o.approved()
	r.Result = o.Seal([]byte(fetched), foureyes.ResultData(r.ID))
	storetest.Equal(t, string(storetest.Value(o.Result(r))(t)), `{"data":{}}`)
}

// A permission granted by the request itself does not allow its approval: the approver is checked before the request
// runs.
func TestPermissionGrantedByTheRequestDoesNotApproveIt(t *testing.T) {
	o := newOffice(t)
	r, gained := o.submit("/things"), false
	o.Run = func(context.Context, json.RawMessage) (json.RawMessage, error) {
		gained = true
		return nil, nil
	}
	_, err := o.Approve(t.Context(), audit.By{UserID: "approver"}, r.ID, func(foureyes.Request) error {
		if gained {
			return nil
		}
		return fault.New(fault.Forbidden, "not allowed")
	})
	storetest.Wants(t, err, fault.Forbidden)
	storetest.Equal(t, gained, false)
}
