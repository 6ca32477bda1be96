package currency

import "context"

// seeded are the pairs of a new installation (D-WAD-05).
var seeded = []struct{ currency, network string }{
	{"BTC", "BTC"}, {"ETH", "ETH"}, {"USDT", "ETH"}, {"USDT", "TRX"}, {"TRX", "TRX"}, {"XRP", "XRP"}, {"SOL", "SOL"},
	{"USDC", "SOL"},
}

var currencyNames = map[string]string{
	"BTC": "Bitcoin", "ETH": "Ether", "USDT": "Tether USD", "TRX": "TRON", "XRP": "XRP", "SOL": "Solana",
	"USDC": "USD Coin",
}

var networkNames = map[string]string{"BTC": "Bitcoin", "ETH": "Ethereum", "TRX": "TRON", "XRP": "XRP Ledger",
	"SOL": "Solana"}

// Seed writes the content of a new installation, all of it enabled for
// withdrawals. The caller sees to it that this happens once, in one
// transaction.
func Seed(ctx context.Context, s Store) (err error) {
	currencies, networks := map[string]int64{}, map[string]int64{}
	for _, p := range seeded {
		if _, ok := currencies[p.currency]; !ok {
			if currencies[p.currency], err = s.AddCurrency(ctx,
				Currency{Code: p.currency, Name: currencyNames[p.currency], Active: true}); err != nil {
				return err
			}
		}
		if _, ok := networks[p.network]; !ok {
			if networks[p.network], err = s.AddNetwork(ctx,
				Network{Code: p.network, Name: networkNames[p.network], Active: true}); err != nil {
				return err
			}
		}
		if _, err := s.AddPair(ctx, Pair{CurrencyID: currencies[p.currency], NetworkID: networks[p.network],
			Active: true, Withdraw: true}); err != nil {
			return err
		}
	}
	return nil
}
