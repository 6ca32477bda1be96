package office

import (
	"testing"
	"time"

	"castellan/internal/blackbox"
)

const withdrawalsPath = "/integration/withdrawals"

// vault is a service with a wallet, and a customer with 1 BTC who may withdraw it.
type vault struct {
	*blackbox.Counter
	wallet, owner blackbox.Headers
}

func newVault(t *testing.T, s *blackbox.Site) *vault {
	t.Helper()
	d := &vault{Counter: blackbox.NewCounter(t, s, "MFA_FOUR_EYES=")}
	s.Exec(`UPDATE users SET level = 1`)
	s.Exec(`INSERT INTO exchange_pair (base, quote) VALUES ('BTC', 'TRY')`)
	s.Exec(`INSERT INTO exchange_rate (pair_id, at, rate, source, created_at) SELECT id, $1, '100', 'test', $1
		FROM exchange_pair WHERE base = 'BTC' AND quote = 'TRY'`, time.Now().Add(-time.Minute).UnixMilli())
	d.wallet = s.ServiceKey("wallet", "--role", "admin")
	blackbox.Until(t, 10*time.Second, "the key is known", func() bool {
		return d.Do(t, "GET", "/integration/events", nil, d.wallet).Status == 200
	})
	d.Ok(t, "POST", blackbox.AdjustPath, d.Adjustment("C", "1"), d.Boss)
	d.owner = d.Login(t, d.Customer)
	return d
}

// request is the body of a withdrawal request, which the customer approves.
func (d *vault) request(externalID string) map[string]any {
	return map[string]any{"externalId": externalID, "userToken": d.owner["x-auth"], "currencyCode": "BTC",
		"network": "BTC", "amount": 0.1, "address": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"}
}

// made returns the id of a withdrawal that the customer has approved.
func (d *vault) made(t *testing.T, externalID string) string {
	t.Helper()
	f := blackbox.FlowOf(t, d.Do(t, "POST", withdrawalsPath, d.request(externalID), d.wallet))
	return withdrawn(t, d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.Customer, "SMS")))
}

// withdrawn returns the id of the withdrawal in the outcome of a challenge.
func withdrawn(t *testing.T, a blackbox.Answer) string {
	t.Helper()
	var final struct {
		ExecResult struct{ Data struct{ ID string } }
	}
	if a.Is(t, 200, "").Read(t, &final); final.ExecResult.Data.ID == "" {
		t.Fatalf("no withdrawal: %s", a)
	}
	return final.ExecResult.Data.ID
}

// status returns the status of a withdrawal.
func (d *vault) status(t *testing.T, id string) string {
	t.Helper()
	var a struct{ Data struct{ Status string } }
	d.Ok(t, "GET", withdrawalsPath+"/"+id, nil, d.wallet).Read(t, &a)
	return a.Data.Status
}

func (d *vault) move(t *testing.T, id, to string) {
	t.Helper()
	d.Ok(t, "PATCH", withdrawalsPath+"/"+id, map[string]string{"status": to}, d.wallet)
}
