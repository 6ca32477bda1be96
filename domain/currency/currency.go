// Package currency owns the reference data of what can be moved and where: the
// currencies, the networks, and the pairs of both on which something may be
// withdrawn (sections 2.5 and 2.10 of the interface; decisions D-CUR-03, D-WAD-05).
//
// Requests are judged by a snapshot and never read the tables. Start reading
// at Catalog; Live holds the snapshot that a node works with.
package currency

import (
	"context"

	"castellan/domain/fault"
)

// Currency is a currency or token. Its Code is unique; ID is internal and is
// what other records refer to.
type Currency struct {
	ID     int64
	Code   string
	Name   string
	Active bool
}

// Network is a blockchain. Its Code is unique.
type Network struct {
	ID     int64
	Code   string
	Name   string
	Active bool
}

// Pair links a currency to a network on which it exists; the interface calls
// it currencyOfNetwork. There is one per currency and network.
type Pair struct {
	ID                    int64
	CurrencyID, NetworkID int64
	Active                bool
	Withdraw              bool // withdrawEnable
}

// Store keeps the reference data. Every method joins the transaction that its
// context carries and else runs in one of its own. It is safe for concurrent
// use and passes currencytest.Run. A change of the data commits a
// change.Note of topic change.Currencies with it.
type Store interface {
	// Currencies, Networks and Pairs list everything, in order of creation.
	Currencies(ctx context.Context) ([]Currency, error)
	Networks(ctx context.Context) ([]Network, error)
	Pairs(ctx context.Context) ([]Pair, error)

	// AddCurrency, AddNetwork and AddPair insert a record and return its id; the
	// id of the argument is ignored. RECORD_ALREADY_EXIST when the code, or the
	// pair of currency and network, is taken, also under concurrent calls. A
	// pair of something unknown is refused with an internal error.
	AddCurrency(ctx context.Context, c Currency) (int64, error)
	AddNetwork(ctx context.Context, n Network) (int64, error)
	AddPair(ctx context.Context, p Pair) (int64, error)
}

// Catalog is a snapshot of the reference data. It is a value that nobody
// changes.
type Catalog struct {
	currencies map[int64]Currency
	networks   map[int64]Network
	byCode     map[string]int64 // of currencies
	netByCode  map[string]int64
	pairs      map[[2]int64]Pair // currency id, network id
}

// NewCatalog returns the catalog of some records.
func NewCatalog(currencies []Currency, networks []Network, pairs []Pair) *Catalog {
	c := &Catalog{map[int64]Currency{}, map[int64]Network{}, map[string]int64{}, map[string]int64{},
		map[[2]int64]Pair{}}
	for _, x := range currencies {
		c.currencies[x.ID], c.byCode[x.Code] = x, x.ID
	}
	for _, n := range networks {
		c.networks[n.ID], c.netByCode[n.Code] = n, n.ID
	}
	for _, p := range pairs {
		c.pairs[[2]int64{p.CurrencyID, p.NetworkID}] = p
	}
	return c
}

// Load reads the whole reference data. Pairs come first, because what they
// link exists before them.
func Load(ctx context.Context, s Store) (*Catalog, error) {
	pairs, err := s.Pairs(ctx)
	if err != nil {
		return nil, err
	}
	networks, err := s.Networks(ctx)
	if err != nil {
		return nil, err
	}
	currencies, err := s.Currencies(ctx)
	if err != nil {
		return nil, err
	}
	return NewCatalog(currencies, networks, pairs), nil
}

// Named finds a currency and a network by their ids, usable or not.
func (c *Catalog) Named(currencyID, networkID int64) (Currency, Network, bool) {
	cur, ok := c.currencies[currencyID]
	net, known := c.networks[networkID]
	return cur, net, ok && known
}

// Withdrawal finds, by their codes, a currency and a network on which it may be
// withdrawn. INVALID_FIELD for what is unknown, inactive, not linked or not
// enabled for withdrawals.
func (c *Catalog) Withdrawal(currencyCode, networkCode string) (Currency, Network, error) {
	cur, net := c.currencies[c.byCode[currencyCode]], c.networks[c.netByCode[networkCode]]
	var ps []fault.Problem
	if !cur.Active {
		ps = append(ps, fault.Problem{Field: "currencyCode", Message: "is no currency that can be withdrawn"})
	}
	if !net.Active {
		ps = append(ps, fault.Problem{Field: "networkCode", Message: "is no network to withdraw on"})
	}
	if len(ps) == 0 {
		if p := c.pairs[[2]int64{cur.ID, net.ID}]; !p.Active || !p.Withdraw {
			ps = append(ps, fault.Problem{Field: "networkCode",
				Message: "is no network on which this currency can be withdrawn"})
		}
	}
	return cur, net, fault.All(ps)
}
