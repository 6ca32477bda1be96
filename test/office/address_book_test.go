package office

import (
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// addressOutcome is the outcome of an addition that required a challenge.
type addressOutcome struct {
	Action     string
	ExecResult struct {
		Success bool
		Code    string
		Data    struct {
			Data struct {
				ID, Name, Address, CurrencyCode, NetworkCode string
				UsableFrom                                   *time.Time
			}
		}
	}
}

// Configuration alone adds a second factor before an addition, and a waiting time after it (D-2FA-28). The
// address is in the book once the challenge is complete, and the rules are checked at that moment.
func TestAddressBookAdditionRequiresChallenge(t *testing.T) {
	const btc = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start("MFA_GUARDED=POST "+blackbox.AddressesPath+"=WITHDRAWAL_ADDRESS_ADD", "ADDRESSBOOK_WAITING_TIME=24h")
		demo := s.Seeded("user")
		token, _ := n.Session(t, demo)
		who := blackbox.Headers{"x-auth": token}
		complete := func(f blackbox.Flow, code string) (out addressOutcome) {
			t.Helper()
			n.Complete(t, f, f.Method(t, "SMS"), code).Is(t, 200, "").Read(t, &out)
			return out
		}
		begin := func(body any) (blackbox.Flow, string) {
			t.Helper()
			f := blackbox.FlowOf(t, n.Ok(t, "POST", blackbox.AddressesPath, body, who).Keys(t, "challenge"))
			return f, n.Code(t, demo, "SMS")
		}

		first, code := begin(blackbox.AddressBody("BTC", "BTC", btc, "Cold"))
		second, otherCode := begin(blackbox.AddressBody("BTC", "BTC", btc, "Warm"))
		if got := string(n.Ok(t, "GET", blackbox.AddressesPath, nil, who).Body); got != "[]" {
			t.Fatalf("before anything was completed: %s", got)
		}
		before := time.Now()
		got := complete(first, code)
		r := got.ExecResult.Data.Data
		if got.Action != "WITHDRAWAL_ADDRESS_ADD" || !got.ExecResult.Success || r.ID == "" || r.Name != "Cold" ||
			r.Address != btc || r.CurrencyCode != "BTC" || r.NetworkCode != "BTC" {
			t.Fatalf("the outcome %+v", got)
		}
		if r.UsableFrom == nil || r.UsableFrom.Before(before.Add(24*time.Hour-time.Second)) ||
			r.UsableFrom.After(time.Now().Add(24*time.Hour)) {
			t.Errorf("usable from %v", r.UsableFrom)
		}
		if got := complete(second, otherCode); got.ExecResult.Success || got.ExecResult.Code != "RECORD_ALREADY_EXIST" {
			t.Errorf("the same address again: %+v", got)
		}
		third, code := begin(blackbox.AddressBody("BTC", "BTC", btc[:len(btc)-1]+"b", "Typo"))
		if got := complete(third, code); got.ExecResult.Success || got.ExecResult.Code != "WD_NETWORK_ASSET_MISMATCH" {
			t.Errorf("a typing error: %+v", got)
		}
		n.Do(t, "POST", blackbox.AddressesPath, map[string]string{"name": "x"}, who).
			Is(t, 400, "INVALID_FIELD")
			// an impossible addition starts no challenge

		var list []map[string]any
		n.Ok(t, "GET", blackbox.AddressesPath, nil, who).Read(t, &list)
		if len(list) != 1 || list[0]["id"] != r.ID || list[0]["usableFrom"] == nil {
			t.Errorf("the book %v", list)
		}
		if rows := s.Count("audit WHERE action = $1 AND user_id = actor_id AND outcome = 'success'",
			"WITHDRAWAL_ADDRESS_ADD"); rows < 1 {
			t.Errorf("%d audit rows of the addition", rows)
		}
		n.Ok(t, "DELETE", blackbox.AddressesPath, map[string]string{"id": r.ID}, who) // not guarded
	})
}
