package money_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/money/provider"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpprovider "castellan/http/money/provider"
	"castellan/persistence"
	"castellan/persistence/money"
)

// slot is the beginning of five minutes.
var slot = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// providerBoth serves the endpoints over four slots of the account main, the last of which arrives first, and one of
// cold. Nothing is left in idle, and another provider has an account of the same name.
func providerBoth(t *testing.T, test func(s *apitest.Site)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := func(account string, slots int, all ...[3]string) {
			w := provider.Arrived{Provider: "spot", Account: account, At: slot.Add(time.Duration(slots) * provider.Every)}
			for _, one := range all {
				b, ok := provider.Read(one[0], one[1], one[2])
				if !ok {
					t.Fatalf("%v is no balance", one)
				}
				w.Balances = append(w.Balances, b)
			}
			storetest.Must(t, db.Commit(t.Context(), w))
		}
		store("main", 3, [3]string{"BTC", "9007199254740993.000000000000000001", "0.2"})
		for i := range 3 {
			store("main", i, [3]string{"BTC", fmt.Sprint(i + 1), "0.1"}, [3]string{"ETH", "5", "0"})
		}
		store("cold", 1, [3]string{"BTC", "0.2", "0"})
		store("idle", 0, [3]string{"XRP", "1", "0"})
		store("idle", 4)
		b, _ := provider.Read("BTC", "8", "8")
		storetest.Must(t, db.Commit(t.Context(), provider.Arrived{Provider: "vault", Account: "main",
			At: slot.Add(provider.Every), Balances: []provider.Balance{b}}))
		group := httpprovider.Group{Store: money.NewProviders(db)}
		test(apitest.Serve(t, edge.Options{}, group).Below("/process/"))
	})
}

func providerShown(account, asset, free, locked string) string {
	return fmt.Sprintf(`{"accountname":"%s","assetObject":{"asset":"%s","free":%s,"locked":%s}}`, account, asset, free,
		locked)
}

const most = "9007199254740993.000000000000000001"

// REQ-PRC-01, D-PRC-02: the last reading of each account, or every one of a range.
func TestOfAsset(t *testing.T) {
	providerBoth(t, func(s *apitest.Site) {
		last, cold := providerShown("main", "BTC", most, "0.2"), providerShown("cold", "BTC", "0.2", "0")
		at := func(i int) string { return providerShown("main", "BTC", fmt.Sprint(i+1), "0.1") }
		ms := func(slots int) string { return fmt.Sprint(slot.Add(time.Duration(slots) * provider.Every).UnixMilli()) }
		for query, want := range map[string]string{
			"account=main":                                       last,
			"account=AllAccounts":                                cold + "," + last,
			"account=cold":                                       cold,
			"account=none":                                       "",
			"account=main&from=" + ms(1):                         last + "," + at(2) + "," + at(1),
			"account=main&to=" + ms(1):                           at(1) + "," + at(0),
			"account=main&from=" + ms(1) + "&to=" + ms(1):        at(1),
			"account=AllAccounts&from=" + ms(0) + "&to=" + ms(1): at(1) + "," + cold + "," + at(0),
			"account=main&from=2026-01-01&to=2026-01-01":         last + "," + at(2) + "," + at(1) + "," + at(0),
			"account=main&from=2026-01-02":                       "",
			"account=main&to=2025-12-31":                         "",
		} {
			s.Wants("GET get-provider-balances-of-asset?provider=spot&asset=btc&"+query, "", 200, "["+want+"]")
		}
		s.Wants("GET get-provider-balances-of-asset?provider=other&asset=BTC&account=main", "", 200, "[]")
		s.Wants("GET get-provider-balances-of-asset", `{"provider":"spot","asset":"ETH","account":"main","to":`+ms(0)+`}`,
			200, "["+providerShown("main", "ETH", "5", "0")+"]")
		const line = "GET get-provider-balances-of-asset?provider=spot&asset=BTC&account=main&limit=2&count=true&from=0"
		res, first := s.Send(line, "")
		link, _, _ := strings.Cut(res.Header.Get("Link"), ">")
		if first != "["+last+","+at(2)+"]" || res.Header.Get("X-Total-Count") != "4" {
			t.Errorf("%s %v", first, res.Header)
		}
		_, query, _ := strings.Cut(link, "?")
		s.Wants("GET get-provider-balances-of-asset?"+query, "", 200, "["+at(1)+","+at(0)+"]")
		s.Wants("GET get-provider-balances-of-asset?account=a&provider=p&asset=x&from=2026-01-02&to=2026-01-01", "", 400,
			"INVALID_FIELD from")
	})
}

// REQ-PRC-02: what the accounts have now; no account stands for all.
func TestLatest(t *testing.T) {
	providerBoth(t, func(s *apitest.Site) {
		last, cold := providerShown("main", "BTC", most, "0.2"), providerShown("cold", "BTC", "0.2", "0")
		for query, want := range map[string]string{"provider=spot": cold + "," + last,
			"provider=spot&account=": cold + "," + last, "provider=spot&account=AllAccounts": cold + "," + last,
			"provider=spot&account=main": last, "provider=spot&account=Main": "", "provider=Spot": "", "provider=x": ""} {
			s.Wants("GET get-provider-balances?"+query, "", 200, "["+want+"]")
		}
	})
}

// REQ-PRC-03, D-PRC-03: any instant of the five minutes; an object where an asset is named.
func TestTotal(t *testing.T) {
	providerBoth(t, func(s *apitest.Site) {
		const line = "GET get-provider-balances-total?provider=spot&datetime5min="
		sum := func(asset, total, free, locked string) string {
			return fmt.Sprintf(`{"provider":"spot","asset":"%s","datetime5min":1767225900000,"total":%s,"free":%s,`+
				`"locked":%s}`, asset, total, free, locked)
		}
		btc, eth := sum("BTC", "2.3", "2.2", "0.1"), sum("ETH", "5", "5", "0")
		for _, at := range []string{"1767225900000", "1767226199999", "2026-01-01T00:07:30Z",
			"2026-01-01T03:05:00%2B03:00"} {
			s.Wants(line+at, "", 200, "["+btc+","+eth+"]")
			s.Wants(line+at+"&asset=eth", "", 200, eth)
			s.Wants(line+at+"&asset=XRP", "", 200, sum("XRP", "0", "0", "0"))
		}
		s.Wants(line+"1767225900000&asset=", "", 200, "["+btc+","+eth+"]")
		s.Wants(line+"1767226800000", "", 200, "[]") // all that was read is zero
		s.Wants(line+"1767226800000&asset=BTC", "", 200,
			strings.Replace(sum("BTC", "0", "0", "0"), "1767225900000", "1767226800000", 1))
		for _, at := range []string{"1767225599999", "2026-01-02", "0001-01-01"} { // nothing was read then
			s.Wants(line+at, "", 200, "[]")
			s.Wants(line+at+"&asset=BTC", "", 200, "[]")
		}
		s.Wants("GET get-provider-balances-total?provider=x&datetime5min=1767225900000", "", 200, "[]")
	})
}
