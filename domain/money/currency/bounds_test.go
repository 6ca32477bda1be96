package currency_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// Each limit of a set-up is exact, and the refusal names the field of its section.
func TestSetupIsValidated(t *testing.T) {
	db := persistencetest.SQLite(t)
	s := &currency.Service{Store: money.NewCurrencies(db), Changes: admin.Changes{Commit: db, Now: time.Now}}
	text := func(n int) string { return strings.Repeat("ü", n) }
	address := func(n int) string { return "https://a.example/" + strings.Repeat("x", n-len("https://a.example/")) }
	minus := amount.Must("-0.1")
	for _, c := range []struct {
		edit   func(*currency.Currency, *currency.Network, *currency.Link)
		fields string
	}{
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			c.Code, n.Code = strings.Repeat("C", 33), ""
		}, "currency.code currencyNetwork.networkCode"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) { c.Code, n.Code = "A b", "ü" },
			"currency.code currencyNetwork.networkCode"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			c.Network, c.Name, c.MarketDataID, c.MarketListingSlug = text(201), "a\nb", text(201), text(201)
			n.Name, n.KYTName, l.ScreeningSymbol, l.MintAddress = text(201), "\x00", text(201), text(201)
		}, "currency.network currency.name currency.marketdataid currency.marketlistingslug currencyNetwork.networkName " +
			"currencyNetwork.kytNetworkName currencyOfNetwork.screeningSymbol currencyOfNetwork.mintAddress"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			c.Image, c.PNGImage = address(2049), "ftp://a.example/x"
		}, "currency.image currency.pngimage"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			c.Image, c.PNGImage = "/own/path.png", "https://a.example/a b"
		}, "currency.image currency.pngimage"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			c.PriceFormat, c.QuantityFormat, c.Threshold = minus, minus, minus
		}, "currency.formatassetprice currency.formatorderquantity currency.threshold"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			l.FormatPrecision = strings.Repeat("#", 65)
		}, "currencyOfNetwork.formatPrecision"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			l.FormatPrecision = "0." + strings.Repeat("0", 19)
		}, "currencyOfNetwork.formatPrecision"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			*c = currency.Currency{Code: strings.Repeat("C", 32), Network: text(200), Name: text(200), MarketDataID: text(200),
				MarketListingSlug: text(200), Image: address(2048), PNGImage: "/own/path.png"}
			*n = currency.Network{Code: strings.Repeat("N", 32), Name: text(200), KYTName: text(200)}
			l.CurrencyCode, l.NetworkCode, l.ScreeningSymbol, l.MintAddress = c.Code, n.Code, text(200), text(200)
			l.FormatPrecision = strings.Repeat("#", 45) + "." + strings.Repeat("0", 18)
		}, ""},
	} {
		in := currency.Setup{
			Currency: currency.Section[currency.Currency]{Enabled: true, Record: currency.Currency{Code: "NEXT",
				Name: "New", Image: "https://cdn.example/new.png"}},
			Network: currency.Section[currency.Network]{Enabled: true, Record: currency.Network{Code: "NEXT", Name: "Net"}},
			Pair: currency.Section[currency.Link]{Enabled: true, Record: currency.Link{CurrencyCode: "NEXT",
				NetworkCode: "NEXT", Pair: currency.Pair{FormatPrecision: "0.00"}}}}
		c.edit(&in.Currency.Record, &in.Network.Record, &in.Pair.Record)
		_, err := s.Setup(t.Context(), audit.By{UserID: "admin"}, in)
		storetest.WantsFields(t, err, c.fields)
	}
}
