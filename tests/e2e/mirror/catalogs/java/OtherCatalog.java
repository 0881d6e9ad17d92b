import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hive.ql.metadata.AuthorizationException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog with a name of its own, as a plugin wraps Delta's: its schema s is that of spark_catalog with the name in front. */
public class OtherCatalog implements TableCatalog, SupportsNamespaces {
    private String name;
    /** The method that the account may not call: "create" or "write"; null without one. */
    private String denied;

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {
        this.name = name;
        this.denied = options.get("denied");
    }

    private void check(String method) {
        if (method.equals(denied)) {
            throw new RuntimeException(new AuthorizationException("No privilege '" + method + "' found"));
        }
    }

    @Override
    public String name() {
        return name;
    }

    private CatalogPlugin session() {
        var active = (org.apache.spark.sql.classic.SparkSession) SparkSession.active();
        return active.sessionState().catalogManager().catalog("spark_catalog");
    }

    private TableCatalog tables() {
        return (TableCatalog) session();
    }

    private SupportsNamespaces namespaces() {
        return (SupportsNamespaces) session();
    }

    private String[] inside(String[] namespace) {
        return namespace.length == 0 ? namespace : new String[] {name + "_" + namespace[0]};
    }

    private Identifier inside(Identifier table) {
        return Identifier.of(inside(table.namespace()), table.name());
    }

    @Override
    public Identifier[] listTables(String[] namespace) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Table loadTable(Identifier table) throws NoSuchTableException {
        return tables().loadTable(inside(table));
    }

    @Override
    public Table loadTable(Identifier table, Set<TableWritePrivilege> privileges) throws NoSuchTableException {
        check("write");
        return loadTable(table);
    }

    @Override
    public Table createTable(
            Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
        check("create");
        try {
            return tables().createTable(inside(table), columns, partitions, properties);
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    @Override
    public Table alterTable(Identifier table, TableChange... changes) throws NoSuchTableException {
        return tables().alterTable(inside(table), changes);
    }

    @Override
    public boolean dropTable(Identifier table) {
        return tables().dropTable(inside(table));
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException();
    }

    @Override
    public String[][] listNamespaces() {
        throw new UnsupportedOperationException();
    }

    @Override
    public String[][] listNamespaces(String[] namespace) {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean namespaceExists(String[] namespace) {
        return namespaces().namespaceExists(inside(namespace));
    }

    @Override
    public Map<String, String> loadNamespaceMetadata(String[] namespace) {
        try {
            return namespaces().loadNamespaceMetadata(inside(namespace));
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    @Override
    public void createNamespace(String[] namespace, Map<String, String> metadata) {
        try {
            namespaces().createNamespace(inside(namespace), metadata);
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    @Override
    public void alterNamespace(String[] namespace, NamespaceChange... changes) {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean dropNamespace(String[] namespace, boolean cascade) {
        throw new UnsupportedOperationException();
    }
}
