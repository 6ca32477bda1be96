package currency

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/sorting"
)

// Catalog is an immutable snapshot of the reference data.
type Catalog struct {
	currencies map[int64]Currency
	networks   map[int64]Network
	byCode     map[string]int64 // by currency code
	netByCode  map[string]int64
	pairs      map[[2]int64]Pair // currency id, network id
	listed     []Listed          // by currency, then in order of creation
}

// Listed is a pair with its currency and network.
type Listed struct {
	Pair
	Currency Currency
	Network  Network
}

// NewCatalog returns the catalog of the records.
func NewCatalog(currencies []Currency, networks []Network, pairs []Pair) *Catalog {
	c := &Catalog{map[int64]Currency{}, map[int64]Network{}, map[string]int64{}, map[string]int64{},
		map[[2]int64]Pair{}, nil}
	for _, x := range currencies {
		c.currencies[x.ID], c.byCode[x.Code] = x, x.ID
	}
	for _, n := range networks {
		c.networks[n.ID], c.netByCode[n.Code] = n, n.ID
	}
	for _, p := range pairs {
		c.pairs[[2]int64{p.CurrencyID, p.NetworkID}] = p
		c.listed = append(c.listed, Listed{p, c.currencies[p.CurrencyID], c.networks[p.NetworkID]})
	}
	sorting.Func(c.listed, func(a, b Listed) int {
		return cmp.Or(cmp.Compare(a.CurrencyID, b.CurrencyID), cmp.Compare(a.ID, b.ID))
	})
	return c
}

// Load reads the whole reference data. Pairs are read first, because their currencies and networks exist before them.
func Load(ctx context.Context, s Store) (*Catalog, error) {
	pairs, err := s.Pairs(ctx)
	if err != nil {
		return nil, err
	}
	networks, err := s.Networks(ctx, Query{})
	if err != nil {
		return nil, err
	}
	currencies, err := s.Currencies(ctx, Query{})
	if err != nil {
		return nil, err
	}
	return NewCatalog(currencies, networks, pairs), nil
}

// Pairs lists every pair, or only the active or inactive ones, by currency. The caller must not change the list.
func (c *Catalog) Pairs(active *bool) []Listed {
	if active == nil {
		return c.listed
	}
	return slices.DeleteFunc(slices.Clone(c.listed), func(l Listed) bool { return l.Active != *active })
}

// Pair finds a pair by its id.
func (c *Catalog) Pair(id int64) (Listed, bool) {
	i := slices.IndexFunc(c.listed, func(l Listed) bool { return l.ID == id })
	if i < 0 {
		return Listed{}, false
	}
	return c.listed[i], true
}

// IDs returns the ids of the pairs for which is holds.
func (c *Catalog) IDs(is func(Listed) bool) []int64 {
	ids := []int64{}
	for _, l := range c.listed {
		if is(l) {
			ids = append(ids, l.ID)
		}
	}
	return ids
}

// Info finds the first pair of a currency and a network, by their codes in any case; nil: any. Without both it returns
// the first active pair (D-CUR-01).
func (c *Catalog) Info(symbol, network *string) (Listed, bool) {
	is := func(want *string, code string) bool { return want == nil || strings.EqualFold(*want, code) }
	i := slices.IndexFunc(c.listed, func(l Listed) bool {
		return is(symbol, l.Currency.Code) && is(network, l.Network.Code) &&
			(symbol != nil || network != nil || l.Active && l.Currency.Active)
	})
	if i < 0 {
		return Listed{}, false
	}
	return c.listed[i], true
}

// FindByIDs finds a currency and a network by their ids, whether enabled or not.
func (c *Catalog) FindByIDs(currencyID, networkID int64) (Currency, Network, bool) {
	cur, ok := c.currencies[currencyID]
	net, known := c.networks[networkID]
	return cur, net, ok && known
}

// Decimals returns the number of decimals of amounts of a pair. RECORD_NOT_FOUND.
func (c *Catalog) Decimals(pairID int64) (int, error) {
	l, known := c.Pair(pairID)
	if !known {
		return 0, fault.New(fault.RecordNotFound, "there is no such pair")
	}
	return l.Decimals(), nil
}

// Withdrawal finds, by their codes, a currency and a network that is enabled for its withdrawals. INVALID_FIELD for a
// code that is unknown, inactive, not linked or not enabled for withdrawals.
func (c *Catalog) Withdrawal(currencyCode, networkCode string) (Currency, Network, error) {
	cur, net := c.currencies[c.byCode[currencyCode]], c.networks[c.netByCode[networkCode]]
	var ps fault.Problems
	ps.Require(cur.Active && cur.Withdraw, "currencyCode", "is not a currency enabled for withdrawals")
	ps.Require(net.Active, "networkCode", "is not a network enabled for withdrawals")
	p := c.pairs[[2]int64{cur.ID, net.ID}]
	ps.Require(p.Active && p.Withdraw || len(ps) > 0, "networkCode",
		"is not a network on which this currency can be withdrawn")
	return cur, net, fault.All(ps)
}
