package access

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// The list of challenges that wait for a device (REQ-2FA-25…27, 29, D-2FA-25, SEC-17).
func TestDeviceListsPendingChallenges(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Set("LANGUAGE_TIME_ZONE=Europe/Istanbul").Start()
		demo, boss := s.Seeded("user"), s.Seeded("admin")
		x, _ := n.Session(t, demo)
		y, _ := n.Session(t, boss)
		p, foreign := blackbox.Enroll(t, n, demo, x, device.EdDSA, ""), blackbox.Enroll(t, n, boss, y, device.ES256, "")
		if got := string(p.Ongoing(t).Is(t, 200, "").Body); got != "[]" {
			t.Errorf("nothing waits: %s", got)
		}
		from := blackbox.Headers{
			"device-brand":    "Acme",
			"device-model":    "Browser",
			"device-desc":     "desk",
			"accept-language": "tr",
		}
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), from))
		q := blackbox.NewPocket(t, n, device.ES256)
		add := blackbox.FlowOf(t, q.Register(t, x, ""))

		got := p.Ongoing(t).Is(t, 200, "")
		var items []struct {
			Body json.RawMessage
			Data map[string]json.RawMessage
		}
		got.Read(t, &items)
		if len(items) != 2 || slices.Sorted(maps.Keys(items[0].Data))[0] != "action" || len(items[0].Data) != 6 {
			t.Fatalf("%s", got)
		}
		var params map[string]json.RawMessage
		json.Unmarshal(items[1].Data["params"], &params)
		if want := []string{"countryName", "dateTime", "deviceBrand", "deviceDesc", "deviceModel", "expire", "infoTable",
			"ip", "timestamp"}; !slices.Equal(
			slices.Sorted(maps.Keys(params)),
			want,
		) {
			t.Errorf("params %v", slices.Sorted(maps.Keys(params)))
		}
		all := p.List(t) // newest first
		login := all[1].Data
		if all[0].Data.ChallengeID != add.ChallengeID || all[0].Data.Action != "DEVICE_ADD" ||
			login.ChallengeID != f.ChallengeID || login.Action != "LOGIN" ||
			login.TS != f.TS || login.MethodID != f.Method(t, "PUSH").ID || login.ActionTitle != "Sign-in" ||
			all[1].Body != "Do you approve: Sign-in" ||
			login.NumberMatching {
			t.Errorf("%+v", all)
		}
		zone, err := time.LoadLocation("Europe/Istanbul")
		if err != nil {
			t.Fatal(err)
		}
		w := login.Params
		if w.IP != "127.0.0.1" || w.DeviceBrand != "Acme" || w.DeviceModel != "Browser" || w.DeviceDesc != "desk" ||
			w.Timestamp != f.TS || w.CountryName != "" ||
			w.DateTime != time.UnixMilli(f.TS).In(zone).Format("02.01.2006 15:04:05") ||
			w.Expire > 120 ||
			w.Expire < 60 {
			t.Errorf("%+v", w)
		}
		for i, rows := range [][][]string{
			{{"Account device", "Acme One"}, {"IP address", "127.0.0.1"}},
			{{"Device", "Acme Browser"}, {"IP address", "127.0.0.1"}},
		} {
			table := all[i].Data.Params.InfoTable
			kept := slices.DeleteFunc(table.Data, func(r []string) bool { return i == 0 && r[0] == "Device" }) // Go's client
			if fmt.Sprint(kept) != fmt.Sprint(rows) || table.Metadata.Type != "table" || table.Metadata.Cols != 2 ||
				table.Metadata.Rows < len(rows) {
				t.Errorf("table %+v, want %v", table, rows)
			}
		}
		path := blackbox.OngoingPath + "?deviceId=" + p.ID + "&_requesterLanguage=tr"
		tr := string(n.Ok(t, "GET", path, nil, p.Sign(t, "GET", path, nil, device.Claims{})).Body)
		if !strings.Contains(tr, "Onaylıyor musunuz: Giriş") || !strings.Contains(tr, `["Cihaz","Acme Browser"]`) {
			t.Errorf("in Turkish: %s", tr)
		}
		if others := foreign.List(t); len(others) != 0 {
			t.Errorf("another user's device sees %+v", others)
		}

		// Every error gets the same refusal.
		impostor := foreign
		impostor.ID = p.ID
		refused := p.Ongoing(t, func(c *device.Claims) { c.Target += "x" }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		got = impostor.Ongoing(t)
		same := strings.ReplaceAll(string(got.Body), got.Header.Get("x-request-id"), refused.Header.Get("x-request-id"))
		if got.Status != 401 || same != string(refused.Body) || got.Header.Get("device-signature-nonce") != "" {
			t.Errorf("another's key: %s", got)
		}
		n.Do(t, "GET", blackbox.OngoingPath+"?deviceId="+p.ID, nil, nil).Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		n.Do(t, "GET", blackbox.OngoingPath+"?deviceId="+p.ID, nil, blackbox.Headers{"x-auth": x}).
			Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		inBody := []byte(`{"deviceId":"` + p.ID + `"}`) // D-GEN-01
		n.Do(t, "GET", blackbox.OngoingPath, inBody, p.Sign(t, "GET", blackbox.OngoingPath, inBody, device.Claims{})).Is(t,
			200, "")

		// Answered and expired challenges are not listed.
		p.Answer(t, f, "APPROVED").Is(t, 200, "")
		if all := p.List(t); len(all) != 1 || all[0].Data.ChallengeID != add.ChallengeID {
			t.Errorf("after the approval: %+v", all)
		}
		p.Answer(t, add, "DENIED").Is(t, 200, "")
		blackbox.Tune(t, n, blackbox.Admin(t, s, n), "PUSH", 1000, 0)
		f = n.Login(t, demo)
		for len(p.List(t)) > 0 { // the challenge expires in one second of real time
			time.Sleep(50 * time.Millisecond)
		}
		p.Answer(t, f, "APPROVED").Is(t, 410, "METHOD_EXPIRED")
	})
}
