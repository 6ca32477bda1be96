package people_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/bootstrap"
	"castellan/domain/proof/totp"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpbootstrap "castellan/http/people/bootstrap"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// D-EXT-20: the page of a setup link makes an administrator with one of the two factors.
func TestSetupOfTheFirstAdministrator(t *testing.T) {
	const origin = "https://id.example.com"
	for _, method := range []bootstrap.Method{bootstrap.TOTP, bootstrap.Passkey} {
		db, now := persistencetest.SQLite(t), func() time.Time { return time.UnixMilli(1_700_000_000_000) }
		hasher, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1},
			Slots: 2, Queue: 8})
		storetest.Must(t, err)
		party, _ := passkey.NewParty(origin, "Castellan", nil)
		store, users := people.NewBootstrap(db), account.NewUsers(db)
		service := &bootstrap.Service{Store: store, Users: users, Ring: keyringtest.Ring(t, now),
			Changes: admin.Changes{Commit: db, Now: now, Lock: store.Lock}, Hasher: hasher,
			Policy: password.Policy{MinChars: 8, MaxChars: 128}, Party: party, Issuer: "Castellan",
			Tries: password.NewGuards(account.NewPasswordGuards(db), db,
				password.Limit(bootstrap.Requests, bootstrap.Window), now),
			Log: slog.New(slog.DiscardHandler), Now: now}
		token, _, err := service.Create(t.Context(), audit.Operator)
		storetest.Must(t, err)
		s := apitest.Serve(t, edge.Options{}, httpbootstrap.Group{Service: service}).As("anonymous").Below("/auth/setup/")
		begin := func(token string) string {
			return fmt.Sprintf(`{"token":%q,"email":"Boss@example.com","countryCode":"90","phoneNumber":"5321234567",`+
				`"name":"Ada","surname":"Lovelace","password":"tall-lantern-orchard","method":%q}`, token, method)
		}
		s.Wants("POST begin", begin("other"), 404, "NOT_FOUND")
		status, answer := s.Call("POST begin", begin(token))
		var b struct {
			Data struct {
				Ticket        string
				PublicKey     json.RawMessage
				Authenticator *struct {
					Base32, OTPAuthURL, QRDataURL string
					RecoveryCodes                 []string
				}
			}
		}
		if err := json.Unmarshal([]byte(answer), &b); err != nil || status != 200 {
			t.Fatalf("%s: %d %s, %v", method, status, answer, err)
		}
		proof := `,"brand":"Chromium","model":"Linux","attestation":`
		if a := b.Data.Authenticator; method == bootstrap.TOTP {
			if len(b.Data.PublicKey) > len("null") || !strings.HasPrefix(a.OTPAuthURL, "otpauth://totp/") ||
				!strings.Contains(a.OTPAuthURL, a.Base32) || len(a.RecoveryCodes) == 0 ||
				!strings.HasPrefix(a.QRDataURL, "data:image/png;base64,") {
				t.Errorf("%+v", a)
			}
			secret := storetest.Value(totp.ParseSecret(a.Base32))(t)
			proof = `,"value":"` + totp.CodeAt(secret, totp.StepAt(now())) + `"`
		} else if a != nil {
			t.Errorf("%+v", a)
		} else {
			proof += string(passkeytest.New(t, "id.example.com", origin).Create(t, b.Data.PublicKey))
		}
		all, err := users.List(t.Context(), "", 10)
		if storetest.Must(t, err); len(all) != 0 {
			t.Errorf("accounts before the end: %+v", all)
		}
		s.Wants("POST complete", fmt.Sprintf(`{"token":%q,"ticket":"x"%s}`, token, proof), 400, "INVALID_FIELD ticket")
		status, done := s.Call("POST complete", fmt.Sprintf(`{"token":%q,"ticket":%q%s}`, token, b.Data.Ticket, proof))
		all, err = users.List(t.Context(), "", 10)
		storetest.Must(t, err)
		if len(all) != 1 || status != 200 || done != `{"data":{"userId":"`+all[0].ID+`"}}` {
			t.Fatalf("%s: %d %s, %+v", method, status, done, all)
		}
		if u := all[0]; u.Email != "boss@example.com" || u.Phone != "+905321234567" || u.FullName() != "Ada Lovelace" ||
			u.Roles[0] != user.RoleAdmin {
			t.Errorf("%+v", u)
		}
		keys := storetest.Value(factor.NewPasskeys(db).List(t.Context(), all[0].ID))(t)
		if wants := method == bootstrap.Passkey; wants != (len(keys) == 1) || wants &&
			keys[0].Brand+keys[0].Model+keys[0].Platform != "ChromiumLinuxpasskey" {
			t.Errorf("%s: %+v", method, keys)
		}
		if did := persistencetest.Did(t, db, bootstrap.ActionAdmin); len(did) != 1 || did[0].ActorID != "setup-link" {
			t.Errorf("%+v", did)
		}
	}
}
