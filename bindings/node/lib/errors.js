// The errors of this package.

/** One failure of the library: `code` is the status' name, `status` its number. */
export class ProofinferError extends Error {
  constructor(code, message, status, options) {
    super(message, options);
    this.code = code;
    this.status = status;
  }
}
ProofinferError.prototype.name = 'ProofinferError';

/** A handle was used after it was closed. */
export class ClosedError extends ProofinferError {
  constructor(what) {
    super('ERR_PROOFINFER_CLOSED', `this ${what} is closed`, undefined);
  }
}
ClosedError.prototype.name = 'ClosedError';

/** The library cannot be found, or is of another major version. */
export class LibraryError extends ProofinferError {
  constructor(message) {
    super('ERR_PROOFINFER_LIBRARY', message, undefined);
  }
}
LibraryError.prototype.name = 'LibraryError';

/** An AbortSignal stopped the operation; `cause` is the signal's reason. */
export class AbortError extends Error {
  constructor(reason) {
    super('The operation was aborted', { cause: reason });
    this.code = 'ABORT_ERR';
  }
}
AbortError.prototype.name = 'AbortError';
