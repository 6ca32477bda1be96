package foureyes_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/office/foureyes"
)

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
	if fault.CodeOf(err) != fault.Forbidden || ran != 0 {
		t.Errorf("%v, ran %d times", err, ran)
	}
}
