package people_test

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
)

// The owner cancels a withdrawal that the wallet has not claimed, also a held one, and no other account's.
func TestOwnCancel(t *testing.T) {
	withdrawals(t, func(s *integrationSite) {
		s.user("eve", func(*user.User) {})
		cancel := func(caller, id string, status int, want string) {
			t.Helper()
			s.As(caller).Wants("POST /asset/withdrawals/"+id+"/cancel", "", status, want)
		}
		id := s.made()
		cancel("eve", id, 404, "RECORD_NOT_FOUND")
		cancel("jane", id, 200, record(id, "made-1", "cancelled", 12, "null", "null"))
		s.has("jane", "2", "0")
		cancel("jane", id, 409, "INVALID_STATE")
		id = s.made()
		storetest.Must(t, s.db.Commit(t.Context(), user.SetWithdrawProhibited{UserID: "jane", Prohibited: true}))
		s.Wants("PATCH /integration/withdrawals/"+id, `{"status":"processing"}`, 409, "INVALID_STATE")
		cancel("jane", id, 200, record(id, "made-2", "cancelled", 12, "null", "null"))
		s.has("jane", "2", "0")
		storetest.Must(t, s.db.Commit(t.Context(), user.SetWithdrawProhibited{UserID: "jane"}))
		for _, status := range []string{"timeOut", "processing"} {
			id = s.made()
			s.Wants("PATCH /integration/withdrawals/"+id, `{"status":"`+status+`"}`, 200, record(id, fmt.Sprint("made-", s.n),
				status, map[string]int{"timeOut": 7, "processing": 9}[status], "null", "null"))
			cancel("jane", id, 409, "INVALID_STATE")
		}
	})
}

// A claim of an account at risk is refused with the held record, and an operator cannot resume it before the account is
// harmless again.
func TestWithdrawalHeld(t *testing.T) {
	withdrawals(t, func(s *integrationSite) {
		id := s.made()
		held := strings.Replace(record(id, "made-1", "waitingApproval", 5, "null", "null"), `"hold":null`,
			`"hold":{"reason":"AML","since":"2026-03-10T12:00:00.000Z","until":null}`, 1)
		storetest.Must(t, s.db.Commit(t.Context(), user.SetAMLStatus{UserID: "jane", Status: "risky"}))
		for range 2 {
			status, answer := s.Call("PATCH /integration/withdrawals/"+id, `{"status":"processing"}`)
			if data := strings.TrimSuffix(strings.TrimPrefix(held, "{"), "}"); status != 409 ||
				apitest.Refusal(answer) != "INVALID_STATE" || !strings.Contains(answer, data) {
				t.Errorf("%d %s, want %s", status, answer, data)
			}
		}
		s.Wants("GET /integration/withdrawals/"+id, "", 200, held)
		s.Wants("POST /admin/withdrawals/"+id+"/resume", `{}`, 422, "AML_RISKY")
		storetest.Must(t, s.db.Commit(t.Context(), user.SetAMLStatus{UserID: "jane", Status: user.NotRisky}))
		s.Wants("POST /admin/withdrawals/"+id+"/resume", `{}`, 200, record(id, "made-1", "queued", 8, "null", "null"))
		s.Wants("PATCH /integration/withdrawals/"+id, `{"status":"processing"}`, 200,
			record(id, "made-1", "processing", 9, "null", "null"))
	})
}
