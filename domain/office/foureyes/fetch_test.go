package foureyes_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
)

const fetched = `{"name":"wallet","key":"s3cret"}`

// fetch fetches the response of a request.
func (o *office) fetch(userID, id string) (foureyes.Request, string, error) {
	r, answer, err := o.Fetch(o.t.Context(), audit.By{UserID: userID}, id,
		func(_ context.Context, request json.RawMessage) (json.RawMessage, error) {
			o.ran = append(o.ran, string(request))
			return json.RawMessage(fetched), o.fails
		})
	return r, string(answer), err
}

// approved stores an approved request whose response holds a secret.
func (o *office) approved() foureyes.Request {
	o.t.Helper()
	return storetest.Value(o.approve("other", o.standAt("/keys").ID))(o.t)
}

// An approval does not execute a request whose response holds a secret. Its requester does, once, and the stored result
// lacks the secret (D-EXT-08).
func TestSecretIsFetchedByRequester(t *testing.T) {
	o := newOffice(t)
	pending := o.standAt("/keys")
	_, _, err := o.fetch("requester", pending.ID)
	storetest.Wants(t, err, fault.InvalidState)
	r := storetest.Value(o.approve("other", pending.ID))(t)
	storetest.Same(t, o.get(r.ID), r)
	if asked, err := o.Asked(r); len(o.ran) != 0 || r.Status != foureyes.Approved || r.Result != nil || !r.Fetchable() ||
		string(asked) != `{"n":1}` || err != nil {
		t.Errorf("%+v, ran %v, asked for %s, %v", r, o.ran, asked, err)
	}
	for _, c := range []struct {
		who, id string
		want    fault.Code
	}{{"other", r.ID, fault.Forbidden}, {"third", r.ID, fault.Forbidden}, {"requester", "unknown", fault.RecordNotFound},
		{"requester", o.stand().ID, fault.InvalidState}} {
		_, answer, err := o.fetch(c.who, c.id)
		if storetest.Wants(t, err, c.want); answer != "" {
			t.Errorf("%s got %s", c.who, answer)
		}
	}
	o.live, o.account.SV = false, 9 // the requester has logged in again
	o.fails = fault.New(fault.RecordAlreadyExist, "the name is taken")
	_, answer, err := o.fetch("requester", r.ID)
	if storetest.Wants(t, err, fault.RecordAlreadyExist); answer != "" || !o.get(r.ID).Fetchable() {
		t.Errorf("a refusal ended the request: %+v, %s", o.get(r.ID), answer)
	}
	o.fails = nil
	_, answer, err = o.fetch("requester", r.ID)
	storetest.Must(t, err)
	got := o.get(r.ID)
	result, err := o.Result(got)
	if answer != fetched || string(result) != `{"name":"wallet"}` || err != nil || got.Sealed != nil || got.Fetchable() ||
		got.Status != foureyes.Approved || got.DecidedBy != "other" {
		t.Errorf("%s, then %+v with %s, %v", answer, got, result, err)
	}
	_, _, err = o.fetch("requester", r.ID)
	storetest.Wants(t, err, fault.InvalidState)
	storetest.Equal(t, len(o.ran), 2, o.ran)
	storetest.Same(t, o.acts(r.ID)[1:], []string{"FOUR_EYES_APPROVE other requester success POST /keys",
		"FOUR_EYES_FETCH requester requester success POST /keys"})
}

// An approval that was not fetched ends after 24 hours.
func TestUnfetchedApprovalExpires(t *testing.T) {
	o := newOffice(t)
	r := o.approved()
	o.now = r.DecidedAt.Add(foureyes.FetchTime)
	_, _, err := o.fetch("requester", r.ID)
	storetest.Wants(t, err, fault.InvalidState)
	if got := o.get(r.ID).At(o.now); got.Status != foureyes.Expired || len(o.ran) != 0 {
		t.Errorf("%+v, ran %v", got, o.ran)
	}
	_, err = o.Refuse(t.Context(), audit.By{UserID: "other"}, r.ID, "late", o.permit)
	storetest.Wants(t, err, fault.InvalidState)
	o.now = o.now.Add(-time.Millisecond)
	_, answer, err := o.fetch("requester", r.ID)
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
	_, _, err := o.fetch("requester", r.ID)
	if storetest.Wants(t, err, fault.Forbidden); !strings.Contains(err.Error(), "withdraw the request") {
		t.Errorf("%v does not say what to do", err)
	}
	o.account.CV--
	got, err := o.Refuse(t.Context(), audit.By{UserID: "third"}, r.ID, "no", o.permit)
	if storetest.Must(t, err); got.Status != foureyes.Refused || got.Sealed != nil {
		t.Errorf("%+v", got)
	}
	_, _, err = o.fetch("requester", r.ID)
	storetest.Wants(t, err, fault.InvalidState)
	storetest.Equal(t, len(o.ran), 0, o.ran)
}

// A result that version 0.9 stored is shown without its secret.
func TestStoredSecretIsNotShown(t *testing.T) {
	o := newOffice(t)
	r := o.approved()
	r.Result = o.Seal([]byte(fetched), foureyes.ResultData(r.ID))
	storetest.Equal(t, string(storetest.Value(o.Result(r))(t)), `{"name":"wallet"}`)
}

// held is a store with one request.
type held struct {
	foureyes.Store
	request foureyes.Request
}

func (s held) Hold(context.Context, string) (foureyes.Request, error) { return s.request, nil }
func (s held) Decide(context.Context, foureyes.Request) error {
	panic("a request was decided that may not be approved")
}

// A permission granted by the request itself does not allow its approval: the approver is checked before the request
// runs.
func TestPermissionGrantedByTheRequestDoesNotApproveIt(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	gained, ran := false, 0
	s := foureyes.Service{
		Store: held{request: foureyes.Request{ID: "r", Method: "POST", Path: "/x", RequestedBy: "requester",
			ExpiresAt: now.Add(time.Minute), Status: foureyes.Pending, Sealed: []byte(`{"request":{}}`)}},
		Changes: admin.Changes{Now: func() time.Time { return now }},
		Account: func(context.Context, string) (challenge.Account, error) { return challenge.Account{}, nil },
		Live:    func(string, string, int64) bool { return true },
		Shared:  func(context.Context, string, string) (bool, error) { return false, nil },
		Open:    func(sealed, _ []byte) ([]byte, error) { return sealed, nil },
		Run: func(context.Context, json.RawMessage) (json.RawMessage, error) {
			gained, ran = true, ran+1
			return nil, nil
		},
	}
	_, err := s.Approve(t.Context(), audit.By{UserID: "approver"}, "r", func(foureyes.Request) error {
		if gained {
			return nil
		}
		return fault.New(fault.Forbidden, "not allowed")
	})
	storetest.Wants(t, err, fault.Forbidden)
	storetest.Equal(t, ran, 0)
}
