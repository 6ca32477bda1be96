package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/domain/proof/totp"
	"castellan/domain/session/session"
	httpuser "castellan/http/account/user"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/persistence"
	accountstore "castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/proof"
	sessionstore "castellan/persistence/session"
)

// D-EXT-14: the factors, sessions and remembered browsers of an account are counted, and only its own.
func TestSecurity(t *testing.T) {
	userBoth(t, func(t *testing.T, _ *apitest.Site, db *persistence.DB) {
		login := mfa.Policy{ActionCode: mfa.Login, Type: mfa.Common, EntityType: mfa.General, RememberDays: 30, Required: 1,
			Methods: []mfa.Choice{{Code: mfa.SMS}}}
		withdraw := login
		withdraw.ActionCode = mfa.Withdraw
		catalog := mfa.NewCatalog([]mfa.Method{{Code: mfa.SMS}}, nil, []mfa.Policy{login, withdraw})
		s := apitest.Serve(t, edge.Options{}, httpuser.Group{Users: accountstore.NewUsers(db),
			Sessions: sessionstore.NewSessions(db), Now: clock, TOTP: proof.NewTOTP(db),
			Devices: &device.Service{Store: proof.NewDevices(db),
				Passkeys: &device.Passkeys{Store: factor.NewPasskeys(db)}},
			Remembered: &remembered.Service{Store: factor.NewRemembered(db), Now: clock,
				Catalog: func() *mfa.Catalog { return catalog }}})
		const path = "GET /admin/user/security?userId="
		wants := func(id string, totp, confirmed bool, devices, passkeys, sessions, browsers int) {
			t.Helper()
			s.Wants(path+id, "", 200, fmt.Sprintf(`{"data":{"userId":%q,"totp":%t,"totpConfirmed":%t,"devices":%d,`+
				`"passkeys":%d,"sessions":%d,"rememberedBrowsers":%d}}`, id, totp, confirmed, devices, passkeys, sessions,
				browsers))
		}
		one, two := person(1, 60).ID, person(2, 29).ID
		wants(one, false, false, 0, 0, 0, 0)

		writes := []commit.Write{totp.Define{Definition: totp.Definition{UserID: one, ID: "t1", Sealed: []byte("sealed"),
			CreatedAt: now}, Codes: []keyring.Sum{{Sum: []byte("sum")}}}}
		for i, alg := range []string{device.ES256, device.EdDSA} {
			_, key := devicetest.Signer(t, alg)
			writes = append(writes, device.Add{Device: device.Device{ID: fmt.Sprint("d", i), UserID: one, Key: key,
				Brand: "Google", Model: "Pixel", Platform: "android", Status: device.Active, CreatedAt: now}})
		}
		_, key := devicetest.Signer(t, device.ES256)
		public, err := passkey.ParseKey([]byte(key.JWK()))
		storetest.Must(t, err)
		writes = append(writes, passkey.Add{Credential: passkey.Credential{DeviceID: "p1", UserID: one,
			ID: []byte(strings.Repeat("p", 16)), Key: public, CreatedAt: now}})
		for i, until := range []time.Duration{time.Hour, 2 * time.Hour, 0} { // one has expired
			writes = append(writes, session.Add{Session: session.Session{ID: id.New(now.Add(time.Duration(i))), UserID: one,
				CreatedAt: now, LastSeenAt: now, ExpiresAt: now.Add(until), SV: 1}, CV: 1})
		}
		for i, action := range []string{mfa.Login, mfa.Withdraw, "OTHER"} { // the last one has no policy
			writes = append(writes, remembered.Add{Client: remembered.Client{ID: fmt.Sprint("r", i), UserID: one,
				Thumbprint: "kkm"[i : i+1], Action: action, Method: challenge.SMS, CV: 1, CreatedAt: now, LastUsedAt: now,
				ExpiresAt: now.AddDate(0, 0, 30)}})
		}
		storetest.Must(t, db.Commit(t.Context(), writes...))
		wants(one, true, false, 2, 1, 2, 1)
		wants(two, false, false, 0, 0, 0, 0)
		storetest.Must(t, db.Commit(t.Context(), totp.UseStep{UserID: one, ID: "t1", Step: 7}))
		wants(one, true, true, 2, 1, 2, 1)

		s.Wants(path+"unknown", "", 404, "RECORD_NOT_FOUND")
	})
}
