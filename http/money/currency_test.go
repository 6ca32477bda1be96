package money_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/rate"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpcurrency "castellan/http/money/currency"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

var currencyNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type currencyService struct {
	*apitest.Site
	db    *persistence.DB
	rates money.Rates
}

// currencyBoth serves the section over what a new installation has.
func currencyBoth(t *testing.T, test func(t *testing.T, s *currencyService)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		rates, live := money.NewRates(db), persistencetest.MoneyIn(t, db, time.Now).Currencies
		changes := admin.Changes{Commit: db, Now: time.Now, Topic: change.Currencies, Follow: live.Follow}
		group := httpcurrency.Group{Service: &currency.Service{Store: money.NewCurrencies(db), Changes: changes}, Live: live,
			Ledger: money.NewLedger(db),
			Rates:  &rate.Service{Store: rates, Now: func() time.Time { return currencyNow }}}
		test(t, &currencyService{apitest.Serve(t, edge.Options{}, group).Below("/"), db, rates})
	})
}

const (
	currencyPart = `"enabled":true,"code":"ABC","network":"ABC","image":"https://cdn.test/abc.svg","name":"Abc",` +
		`"formatassetprice":0.01,"formatorderquantity":"1e-7","depositEnable":true,"withdrawEnable":true,` +
		`"pngimage":"/coins/abc.png","marketdataid":"77","threshold":9007199254740993.000000000000000001,` +
		`"marketlistingslug":"abc"`
	networkPart = `"enabled":true,"networkCode":"NET","networkName":"Net","kytNetworkName":"net"`
	linkPart    = `"enabled":true,"currencyCode":"ABC","networkCode":"NET","screeningSymbol":"ABC_NET",` +
		`"depositEnable":true,"withdrawEnable":false,"formatPrecision":"0.00000000","mintAddress":"",` +
		`"walletProviderId":3,"depositAddressAvailable":true,"walletCurrencyId":"44","networkId":9007199254740991`
)

// setup is a request of three sections in which every "a":b of change takes the place of a's value.
func setup(change ...string) string {
	parts := []string{currencyPart, networkPart, linkPart}
	for _, c := range change {
		section, field, _ := strings.Cut(c, ".")
		name, _, _ := strings.Cut(field, ":")
		i := map[string]int{"currency": 0, "currencyNetwork": 1, "currencyOfNetwork": 2}[section]
		at := strings.Index(parts[i], name+":")
		if at < 0 { // a new field
			parts[i] = field + "," + parts[i]
			continue
		}
		end := strings.Index(parts[i][at:], `,"`)
		if end < 0 {
			end = len(parts[i]) - at
		}
		parts[i] = strings.Trim(parts[i][:at]+field+parts[i][at+end:], ",")
	}
	return `{"currency":{` + parts[0] + `},"currencyNetwork":{` + parts[1] + `},"currencyOfNetwork":{` + parts[2] + `}}`
}

const done = `{"currency":true,"currencyId":%d,"currencyNetwork":true,"currencyNetworkId":%d,` +
	`"currencyOfNetwork":true,"currencyOfNetworkId":%d}`

// set is the audit row of setup, with the ids of the three records.
const (
	set = `ASSETS_SETUP currency %d (currency %[1]d: code "ABC", name "Abc", network "ABC", image ` +
		`"https://cdn.test/abc.svg", pngImage "/coins/abc.png", marketDataId "77", marketListingSlug "abc", priceFormat ` +
		`0.01, quantityFormat 0.0000001, threshold 9007199254740993.000000000000000001, deposit true, withdraw true, ` +
		`active true; network %[2]d: code "NET", name "Net", kytName "net", active true; pair %[3]d: currencyId %[1]d, ` +
		`networkId %[2]d, ` + setPair + ")"
	setPair = `formatPrecision "0.00000000", screeningSymbol "ABC_NET", depositAddress true, walletProviderId 3, ` +
		`walletCurrencyId 44, providerNetworkId 9007199254740991, deposit true, active true`
)

// REQ-CUR-05, 06, D-CUR-02, 03, 10: one transaction; what exists is refused; a section may be left out.
func TestSetup(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		s.Wants("POST admin/assets/setup", setup(), 200, fmt.Sprintf(done, 8, 6, 9))
		s.Wants("GET currency/get-currency-info?symbol=abc", "", 200,
			`{"symbol":"ABC","name":"Abc","network":"NET","decimals":8}`)
		s.Wants("GET admin/currency/get-all?type=CURRENCY&symbol=ABC", "", 200, `[{"id":8,"isActive":true,"code":"ABC",`+
			`"network":"ABC","image":"https://cdn.test/abc.svg","name":"Abc","formatassetprice":0.01,`+
			`"formatorderquantity":0.0000001,"depositEnable":true,"withdrawEnable":true,"pngimage":"/coins/abc.png",`+
			`"marketdataid":"77","threshold":9007199254740993.000000000000000001,"marketlistingslug":"abc"}]`)
		s.Wants("GET admin/currency/get-all?type=CURRENCY_NETWORK&networkCode=NET", "", 200,
			`[{"id":6,"isActive":true,"networkCode":"NET","networkName":"Net","kytNetworkName":"net"}]`)

		// Omitted sections are found by their codes.
		s.Wants("POST admin/assets/setup", setup(`currency."enabled":false`, `currencyNetwork."enabled":false`,
			`currencyOfNetwork."networkCode":"BTC"`), 200, `{"currency":false,"currencyId":8,"currencyNetwork":false,`+
			`"currencyNetworkId":6,"currencyOfNetwork":true,"currencyOfNetworkId":10}`)
		for _, taken := range []string{setup(), setup(`currency."code":"XYZ"`), setup(`currencyNetwork."networkCode":"NEU"`),
			setup(`currency."enabled":false`, `currencyNetwork."enabled":false`), // the pair
			setup(`currency."code":"Abc"`, `currencyNetwork."enabled":false`, `currencyOfNetwork."enabled":false`),
			setup(`currency."enabled":false`, `currencyNetwork."networkCode":"Net"`, `currencyOfNetwork."enabled":false`)} {
			s.Wants("POST admin/assets/setup", taken, 409, "RECORD_ALREADY_EXIST")
		}
		s.Wants("GET admin/currency/get-all?type=CURRENCY&symbol=XYZ", "", 200, `[]`)

		off := []string{`currency."enabled":false`, `currencyNetwork."enabled":false`, `currencyOfNetwork."enabled":false`}
		s.Wants("POST admin/assets/setup", setup(off...), 200, `{"currency":false,"currencyId":8,"currencyNetwork":false,`+
			`"currencyNetworkId":6,"currencyOfNetwork":false,"currencyOfNetworkId":9}`)
		s.Wants("POST admin/assets/setup", setup(append(off, `currency."code":"NONE"`, `currencyNetwork."networkCode":"NONE"`,
			`currencyOfNetwork."networkCode":"NONE"`)...), 200, `{"currency":false,"currencyId":null,"currencyNetwork":false,`+
			`"currencyNetworkId":null,"currencyOfNetwork":false,"currencyOfNetworkId":null}`)
		s.Wants("POST admin/assets/setup", setup(`currency."code":"NEW"`, `currencyNetwork."networkCode":"NEW"`,
			`currencyOfNetwork."currencyCode":"NONE"`, `currencyOfNetwork."networkCode":"abc"`), 400,
			"INVALID_FIELD currencyOfNetwork.currencyCode currencyOfNetwork.networkCode")
		s.Wants("GET admin/currency/get-all?type=CURRENCY&symbol=NEW", "", 200, `[]`)

		s.trail(t, fmt.Sprintf(set, 8, 6, 9), "ASSETS_SETUP pair 10 (pair 10: currencyId 8, networkId 1, "+setPair+")")
	})
}

// trail checks the audit rows, the oldest first; they hold no text that was sent.
func (s *currencyService) trail(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, act := range persistencetest.Acts(t, s.db) {
		part := strings.SplitN(act, "|", 5)
		got = append(got, part[0]+" "+part[3]+" ("+part[4]+")")
	}
	storetest.Same(t, strings.Join(got, "\n"), strings.Join(want, "\n"))
}

// REQ-CUR-05, 07: every field is required, and every one is judged.
func TestFields(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		long := strings.Repeat("x", 2049)
		for _, wrong := range []string{`currency."code":"a b"`, `currency."code":""`,
			`currency."image":"ftp://x/y"`, `currency."image":"/x.png"`, `currency."image":"javascript:alert(1)"`,
			`currency."pngimage":"javascript:alert(1)"`, `currency."pngimage":"//host/x"`, `currency."pngimage":"` + long + `"`,
			`currency."name":" "`, `currency."name":"a\nb"`,
			`currency."formatassetprice":-1`, `currency."formatassetprice":1e400`, `currency."formatassetprice":"NaN"`,
			`currency."formatorderquantity":-0.5`, `currency."threshold":1000000000000000000`,
			`currency."threshold":0.0000000000000000001`, `currency."threshold":-1`,
			`currencyNetwork."networkCode":"ü"`, `currencyOfNetwork."formatPrecision":"19"`,
			`currencyOfNetwork."formatPrecision":"99999999999999999999"`, `currencyOfNetwork."walletProviderId":-1`,
			`currencyOfNetwork."walletCurrencyId":9007199254740992`,
		} {
			field, _, _ := strings.Cut(strings.ReplaceAll(wrong, `"`, ""), ":")
			s.Wants("POST admin/assets/setup", setup(wrong), 400, "INVALID_FIELD "+field)
		}
		s.Wants("POST admin/assets/setup-update", setup(), 400,
			"INVALID_FIELD currency.id currencyNetwork.id currencyOfNetwork.id")
		s.Wants("GET admin/currency/get-all?type=CURRENCY&symbol=ABC", "", 200, `[]`)
		s.trail(t)
	})
}

// REQ-CUR-07, D-CUR-04: all or nothing; ids are judged even where a section is left out; isActive and the link stay.
func TestUpdate(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		ids := []string{`currency."id":8`, `currencyNetwork."id":6`, `currencyOfNetwork."id":9`}
		with := func(change ...string) string { return setup(append(change, ids...)...) }
		s.Wants("POST admin/assets/setup-update", with(), 404, "RECORD_NOT_FOUND")
		s.Wants("POST admin/assets/setup", setup(), 200, fmt.Sprintf(done, 8, 6, 9))
		s.Wants("POST admin/currency-activate", `{"currency":{"id":8,"isActive":false},"currencyOfNetwork":{"id":"9",`+
			`"isActive":false}}`, 200, `{"data":{"currency":{"id":8,"isActive":false},"currencyOfNetwork":{"id":9,`+
			`"isActive":false}}}`)

		s.Wants("POST admin/assets/setup-update", with(`currency."code":"NEW"`, `currency."isActive":true`,
			`currencyNetwork."networkCode":"NET2"`, `currencyOfNetwork."currencyCode":"NEW"`,
			`currencyOfNetwork."networkCode":"NET2"`, `currencyOfNetwork."formatPrecision":"9"`), 200,
			fmt.Sprintf(done, 8, 6, 9))
		s.Wants("GET get-all-currency-network?currencyOfNetworkIsActive=false", "", 200, `[{"id":9,"currencyCode":"NEW",`+
			`"currencyName":"Abc","networkCode":"NET2","networkName":"Net","isActive":false,"depositEnable":true,`+
			`"withdrawEnable":false,"formatPrecision":"9","decimals":9}]`)
		s.Wants("GET admin/currency/get-all?type=CURRENCY&isActive=false", "", 200, `[{"id":8,"isActive":false,`+
			strings.NewReplacer(`"enabled":true,`, "", "ABC\",\"net", "NEW\",\"net", `"1e-7"`, "0.0000001").
				Replace(currencyPart)+`}]`)

		link := []string{`currencyOfNetwork."currencyCode":"NEW"`, `currencyOfNetwork."networkCode":"NET2"`,
			`currencyOfNetwork."formatPrecision":"9"`}
		for _, c := range [][2]string{
			{`currency."code":"BTC"`, "409 RECORD_ALREADY_EXIST"},
			{`currencyNetwork."networkCode":"BTC"`, "409 RECORD_ALREADY_EXIST"},
			{`currency."code":"btc"`, "409 RECORD_ALREADY_EXIST"},
			{`currencyOfNetwork."currencyCode":"BTC"`, "400 INVALID_FIELD currencyOfNetwork.currencyCode"},
			{`currencyOfNetwork."networkCode":"BTC"`, "400 INVALID_FIELD currencyOfNetwork.networkCode"},
			{`currencyOfNetwork."formatPrecision":"8"`, "400 INVALID_FIELD currencyOfNetwork.formatPrecision"},
			{`currencyOfNetwork."formatPrecision":"0.0000000000"`, "200"},
		} {
			wrong, want := c[0], c[1]
			body := with(append([]string{`currency."code":"NEW"`, `currency."name":"` + want[:3] + `"`,
				`currencyNetwork."networkCode":"NET2"`}, append(link, wrong)...)...)
			s.Gets("POST admin/assets/setup-update", body, want)
		}
		off := []string{`currency."enabled":false`, `currencyNetwork."enabled":false`, `currencyOfNetwork."enabled":false`}
		s.Wants("POST admin/assets/setup-update", with(off...), 200, `{"currency":false,"currencyId":8,`+
			`"currencyNetwork":false,"currencyNetworkId":6,"currencyOfNetwork":false,"currencyOfNetworkId":9}`)
		for i := range ids {
			wrong := append([]string{}, ids...)
			wrong[i] = strings.Split(ids[i], ":")[0] + ":99"
			s.Wants("POST admin/assets/setup-update", setup(append(wrong, off...)...), 404, "RECORD_NOT_FOUND")
		}
		s.Wants("GET currency/get-currency-info?symbol=new", "", 200,
			`{"symbol":"NEW","name":"200","network":"NET2","decimals":10}`)
		s.trail(t, fmt.Sprintf(set, 8, 6, 9),
			"CURRENCY_ACTIVATE currency 8 (currency 8 active true -> false, pair 9 active true -> false)",
			`ASSETS_UPDATE currency 8 (currency 8: code "ABC" -> "NEW"; network 6: code "NET" -> "NET2"; pair 9: `+
				`formatPrecision "0.00000000" -> "9")`,
			`ASSETS_UPDATE currency 8 (currency 8: name "Abc" -> "200"; network 6: unchanged; pair 9: formatPrecision "9" -> `+
				`"0.0000000000")`)
	})
}

// D-CUR-12: a pair may have its own largest deposit. An update without the field does not change it.
func TestMaxDeposit(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		update := func(field string) string {
			change := []string{`currency."id":8`, `currencyNetwork."id":6`, `currencyOfNetwork."id":9`}
			if field != "" {
				change = append(change, `currencyOfNetwork.`+field)
			}
			return setup(change...)
		}
		shows := func(want string) {
			t.Helper()
			status, answer := s.Call("GET admin/currency/get-all?type=CURRENCY_OF_NETWORK", "")
			if status != 200 || !strings.Contains(answer, `"networkId":9007199254740991,"maxDeposit":`+want+`}`) {
				t.Errorf("%d %s, want %s", status, answer, want)
			}
		}
		s.Wants("POST admin/assets/setup", setup(`currencyOfNetwork."maxDeposit":"50000.5"`), 200, fmt.Sprintf(done, 8, 6, 9))
		shows("50000.5")
		for _, c := range [][2]string{{"", "50000.5"}, {`"maxDeposit":0`, "0"}, {`"maxDeposit":null`, "null"}} {
			s.Wants("POST admin/assets/setup-update", update(c[0]), 200, fmt.Sprintf(done, 8, 6, 9))
			shows(c[1])
		}
		s.Wants("POST admin/assets/setup-update", update(`"maxDeposit":-1`), 400,
			"INVALID_FIELD currencyOfNetwork.maxDeposit")
	})
}

// REQ-CUR-08, D-CUR-05: both or neither.
func TestActivate(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		body := func(c, p string) string {
			return `{"currency":{"id":` + c + `,"isActive":false},"currencyOfNetwork":{"id":` + p + `,"isActive":false}}`
		}
		s.Wants("POST admin/currency-activate", body("1", "2"), 404, "RECORD_NOT_FOUND") // of ETH
		s.Wants("POST admin/currency-activate", body("99", "1"), 404, "RECORD_NOT_FOUND")
		s.Wants("POST admin/currency-activate", body("1", "99"), 404, "RECORD_NOT_FOUND")
		s.Wants("GET currency/get-currency-info", "", 200, `{"symbol":"BTC","name":"Bitcoin","network":"BTC","decimals":8}`)
		s.Wants("POST admin/currency-activate", body("1", "1"), 200,
			`{"data":{"currency":{"id":1,"isActive":false},"currencyOfNetwork":{"id":1,"isActive":false}}}`)
		s.Wants("GET currency/get-currency-info", "", 200, `{"symbol":"ETH","name":"Ether","network":"ETH","decimals":18}`)
	})
}

// REQ-CUR-01 to 03, D-CUR-01, D-CUR-06
func TestLists(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		s.As("anonymous").Wants("GET currency/get-currency-info?symbol=Usdt&network=trx", "", 200,
			`{"symbol":"USDT","name":"Tether USD","network":"TRX","decimals":6}`)
		s.As("anonymous").Wants("GET currency/get-currency-info", `{"network":"SOL"}`, 200,
			`{"symbol":"SOL","name":"Solana","network":"SOL","decimals":9}`)
		for _, none := range []string{"symbol=NONE", "symbol=BTC&network=TRX", "symbol=", "symbol=%27%20OR%201=1--"} {
			s.As("anonymous").Wants("GET currency/get-currency-info?"+none, "", 404, "RECORD_NOT_FOUND")
		}
		s.As("anonymous").Wants("GET currency/get-currency-info?symbol=%00&network=%ff", "", 400,
			"INVALID_FIELD symbol network")

		count := func(line string, want int) {
			t.Helper()
			status, answer := s.Call(line, "")
			if got := strings.Count(answer, `"id":`); status != 200 || got != want {
				t.Errorf("%s: %d with %d records, want %d", line, status, got, want)
			}
		}
		count("GET get-all-currency-network", 8)
		count("GET get-all-currency-network?currencyOfNetworkIsActive=1", 8)
		count("GET get-all-currency-network?currencyOfNetworkIsActive=false", 0)
		count("GET admin/currency/get-all?type=CURRENCY", 7)
		count("GET admin/currency/get-all?type=CURRENCY&networkCode=NONE", 7)
		count("GET admin/currency/get-all?type=CURRENCY&symbol=BTC&isActive=true", 1)
		count("GET admin/currency/get-all?type=CURRENCY&symbol=BTC&isActive=false", 0)
		count("GET admin/currency/get-all?type=CURRENCY_NETWORK", 5)
		count("GET admin/currency/get-all?type=CURRENCY_NETWORK&symbol=NONE&isActive=false", 5)
		count("GET admin/currency/get-all?type=CURRENCY_NETWORK&networkCode=TRX", 1)
		count("GET admin/currency/get-all?type=CURRENCY_OF_NETWORK&networkCode=NONE&symbol=NONE&isActive=false", 8)
	})
}

// Several administrators at once: one setup, one winner, and nothing of the others, who may cost ids.
func TestRacingSetups(t *testing.T) {
	currencyBoth(t, func(t *testing.T, s *currencyService) {
		made := make(chan string, 6)
		won := storetest.Race(t, 6, fault.RecordAlreadyExist, func(int) error {
			status, answer := s.Call("POST admin/assets/setup", setup())
			if status == 200 {
				made <- answer
				return nil
			}
			return fault.New(fault.Code(apitest.Refusal(answer)), "refused")
		})
		if won != 1 {
			t.Fatalf("%d of 6 were set up", won)
		}
		var ids struct{ CurrencyID, CurrencyNetworkID, CurrencyOfNetworkID int }
		storetest.Must(t, json.Unmarshal([]byte(<-made), &ids))
		s.trail(t, fmt.Sprintf(set, ids.CurrencyID, ids.CurrencyNetworkID, ids.CurrencyOfNetworkID))
	})
}
