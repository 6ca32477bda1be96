// Package currency manages the reference data of assets (sections 2.5, 2.10 and 4.7 of the interface; decisions
// D-CUR-01 to D-CUR-06, D-CUR-10 to D-CUR-12, D-WAD-05): the currencies, the networks, and the pairs of both that are
// enabled for deposits or withdrawals.
//
// Requests use a snapshot and never read the tables. Start reading at Currency and Catalog; Service changes the records
// for administrators; Cache holds the current snapshot of a node.
package currency

import (
	"context"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// Currency is a currency or token. Its Code is unique; ID is internal, and other records refer to it.
type Currency struct {
	ID                int64 `audit:"-"` // the target
	Code              string
	Name              string
	Network           string // its home network, as clients show it
	Image             string // URL
	PNGImage          string // path or URL
	MarketDataID      string // its name at the market data provider
	MarketListingSlug string
	PriceFormat       amount.Amount // formatassetprice
	QuantityFormat    amount.Amount // formatorderquantity
	Threshold         amount.Amount
	Deposit, Withdraw bool // depositEnable, withdrawEnable
	Active            bool
}

// Network is a blockchain. Its Code is unique.
type Network struct {
	ID      int64 `audit:"-"` // the target
	Code    string
	Name    string
	KYTName string // its name at the transaction screening provider
	Active  bool
}

// Pair links a currency to a network on which it exists; the interface calls it currencyOfNetwork. Each currency and
// network has at most one pair.
type Pair struct {
	ID                    int64 `audit:"-"` // the target
	CurrencyID, NetworkID int64
	FormatPrecision       string
	ScreeningSymbol       string
	MintAddress           string // "" for a coin that is not a token
	DepositAddress        bool   // depositAddressAvailable
	// WalletProviderID, WalletCurrencyID and ProviderNetworkID are numbers of the wallet provider, which have no
	// meaning here (D-CUR-03).
	WalletProviderID, WalletCurrencyID, ProviderNetworkID int64
	Deposit, Withdraw                                     bool // depositEnable, withdrawEnable
	Active                                                bool
	// MaxDeposit is the largest deposit that is credited without the treasury; nil: StandardMaxDeposit.
	MaxDeposit *amount.Amount
}

// StandardMaxDeposit is the MaxDeposit of a pair without its own: 10¹⁵ units.
var StandardMaxDeposit = amount.Must("1000000000000000")

// OverMax reports whether a deposit needs the treasury because of its amount.
func (p Pair) OverMax(a amount.Amount) bool {
	if p.MaxDeposit != nil {
		return a.Cmp(*p.MaxDeposit) > 0
	}
	return a.Cmp(StandardMaxDeposit) > 0
}

// Decimals returns the maximum decimals of an amount of the pair (D-CUR-11): the number in FormatPrecision, or else the
// number of digits after its decimal point.
func (p Pair) Decimals() int {
	if strings.Trim(p.FormatPrecision, "0123456789") == "" {
		n, err := strconv.Atoi(p.FormatPrecision)
		if err != nil {
			return math.MaxInt
		}
		return n
	}
	_, fraction, _ := strings.Cut(p.FormatPrecision, ".")
	n := 0
	for _, r := range fraction {
		if r >= '0' && r <= '9' {
			n++
		}
	}
	return n
}

// Limits of texts, in characters.
const (
	MaxText   = 200
	MaxURL    = 2048
	maxFormat = 64
)

var code = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// faults gathers the problems of the fields of a section.
type faults struct {
	section string
	fault.Problems
}

func (f *faults) wants(ok bool, field, message string) {
	f.Require(ok, f.section+"."+field, "%s", message)
}

func (f *faults) code(text, field string) {
	f.wants(code.MatchString(text), field, "must be 1 to 32 letters, digits, dots, dashes and underscores")
}

func (f *faults) text(text, field string) {
	plain := utf8.RuneCountInString(text) <= MaxText && legible.Valid(text)
	f.wants(plain, field, "must be text of at most 200 characters, without control characters")
}

func (f *faults) address(text, field string, path bool) {
	u, err := url.Parse(text)
	ok := err == nil && len(text) <= MaxURL && strings.IndexFunc(text, unicode.IsSpace) < 0
	if path && ok && u.Scheme == "" && u.Host == "" {
		return
	}
	f.wants(ok && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "", field, "must be a web address")
}

func (f *faults) positive(a amount.Amount, field string) {
	f.wants(a.Sign() >= 0, field, "must not be negative")
}

// check returns every invalid field, by its name in the setup of assets.
func (c Currency) check() []fault.Problem {
	f := faults{section: "currency"}
	f.code(c.Code, "code")
	f.text(c.Network, "network")
	f.text(c.Name, "name")
	f.text(c.MarketDataID, "marketdataid")
	f.text(c.MarketListingSlug, "marketlistingslug")
	f.address(c.Image, "image", false)
	f.address(c.PNGImage, "pngimage", true)
	f.positive(c.PriceFormat, "formatassetprice")
	f.positive(c.QuantityFormat, "formatorderquantity")
	f.positive(c.Threshold, "threshold")
	return f.Problems
}

func (n Network) check() []fault.Problem {
	f := faults{section: "currencyNetwork"}
	f.code(n.Code, "networkCode")
	f.text(n.Name, "networkName")
	f.text(n.KYTName, "kytNetworkName")
	return f.Problems
}

func (p Pair) check() []fault.Problem {
	f := faults{section: "currencyOfNetwork"}
	f.text(p.ScreeningSymbol, "screeningSymbol")
	f.text(p.MintAddress, "mintAddress")
	if p.MaxDeposit != nil {
		f.positive(*p.MaxDeposit, "maxDeposit")
	}
	d := p.Decimals()
	f.wants(d <= amount.Decimals && len(p.FormatPrecision) <= maxFormat, "formatPrecision",
		"must be 0 to 18, or a pattern with at most 18 digits after the point")
	return f.Problems
}

// Query selects records; a nil field does not filter.
type Query struct {
	Code   *string
	Active *bool
}

// Store stores the reference data. Every method joins the transaction that its context carries, or else runs in its
// own. It is safe for concurrent use. A change of the data also commits a change.Note of topic change.Currencies.
type Store interface {
	// Currencies and Networks list the matching records, Pairs all pairs, in order of creation.
	Currencies(ctx context.Context, q Query) ([]Currency, error)
	Networks(ctx context.Context, q Query) ([]Network, error)
	Pairs(ctx context.Context) ([]Pair, error)

	// AddCurrency, AddNetwork and AddPair insert a record and return its id; the id of the argument is ignored.
	// RECORD_ALREADY_EXIST if the code, or the pair of currency and network, is taken, also under concurrent calls. A
	// pair with an unknown id is rejected with an internal error.
	AddCurrency(ctx context.Context, c Currency) (int64, error)
	AddNetwork(ctx context.Context, n Network) (int64, error)
	AddPair(ctx context.Context, p Pair) (int64, error)

	// ChangeCurrency, ChangeNetwork and ChangePair call f with the record and save the result, as one step; the ids,
	// including those of a pair's currency and network, are unchanged. RECORD_NOT_FOUND; RECORD_ALREADY_EXIST if the
	// code is taken.
	ChangeCurrency(ctx context.Context, id int64, f func(Currency) (Currency, error)) error
	ChangeNetwork(ctx context.Context, id int64, f func(Network) (Network, error)) error
	ChangePair(ctx context.Context, id int64, f func(Pair) (Pair, error)) error
}
