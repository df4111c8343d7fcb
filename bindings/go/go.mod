module proofinfer.example/proofinfer

go 1.24.0
